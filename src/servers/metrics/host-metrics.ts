import { packageVersion } from "../../base/package-root.ts";
import type { Host } from "../../host/host.ts";
import type { OpenSession } from "../../host/host-sessions.ts";
import type { RecordedEvent } from "../../session/history/events.ts";
import { Histogram, type MetricsText } from "./metrics-text.ts";

/** Seconds. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Tools with figures of their own. The calls of others are counted together, so that names cannot grow without limit. */
const maxTools = 500;
const others = "(others)";
const skillStates = ["active", "disabled", "shadowed", "refused", "untrusted", "failed"] as const;

interface ToolFigures {
  readonly duration: Histogram;
  readonly outcomes: Map<string, number>;
}

/** Counts what happens in a host, from now on. */
export class HostMetrics implements Disposable {
  readonly #host: Host;
  readonly #listening: Disposable[];
  readonly #sessions = new Map<string, Disposable>();
  readonly #running = new Map<string, { readonly tool: string; readonly began: number }>();
  readonly #tools = new Map<string, ToolFigures>();
  readonly #loads = { updated: 0, failed: 0 };
  #opened = 0;

  constructor(host: Host) {
    this.#host = host;
    for (const open of host.openSessions) this.#follow(open);
    this.#listening = [
      host.on("session.opened", (open) => {
        this.#opened++;
        this.#follow(open);
      }),
      host.on("session.closed", ({ sessionId }) => {
        this.#sessions.get(sessionId)?.[Symbol.dispose]();
        this.#sessions.delete(sessionId);
        for (const key of this.#running.keys()) if (key.startsWith(`${sessionId} `)) this.#running.delete(key);
      }),
      host.on("skills.changed", ({ added, updated, failed }) => {
        this.#loads.updated += added.length + updated.length;
        this.#loads.failed += failed.length;
      }),
    ];
  }

  write(text: MetricsText): void {
    const { skills, openSessions, tools, diagnostics } = this.#host;
    text.gauge("skillhost_info", "The version that runs.", 1, { version: packageVersion, node: process.version });
    for (const state of skillStates) {
      const count = skills.filter((skill) => skill.state === state).length;
      text.gauge("skillhost_skills", "Skills by state.", count, { state });
    }
    text.gauge("skillhost_tools", "Tools that can be called.", tools.filter(({ state }) => state === "wins" || state === "renamed").length);
    text.gauge(
      "skillhost_problems",
      "Current problems that are errors.",
      diagnostics.filter(({ severity }) => severity === "error").length,
    );
    for (const [status, count] of countBy(this.#host.listServers().map((server) => server.status)))
      text.gauge("skillhost_mcp_servers", "MCP servers by status.", count, { status });
    for (const [outcome, count] of Object.entries(this.#loads))
      text.counter("skillhost_skill_loads_total", "Loads of changed skills by outcome.", count, { outcome });
    text.gauge("skillhost_sessions", "Open sessions.", openSessions.length);
    text.counter("skillhost_sessions_opened_total", "Sessions that were opened.", this.#opened);
    text.gauge("skillhost_tool_calls_running", "Calls of tools that run.", this.#running.size);
    for (const [tool, { outcomes }] of this.#tools)
      for (const [outcome, count] of outcomes)
        text.counter("skillhost_tool_calls_total", "Calls of tools by outcome.", count, { tool, outcome });
    for (const [tool, { duration }] of this.#tools)
      text.histogram("skillhost_tool_call_duration_seconds", "How long calls of tools took.", duration, { tool });
  }

  [Symbol.dispose](): void {
    for (const listener of [...this.#listening, ...this.#sessions.values()]) listener[Symbol.dispose]();
  }

  #follow({ session }: OpenSession): void {
    this.#sessions.get(session.id)?.[Symbol.dispose]();
    this.#sessions.set(
      session.id,
      session.events.addSink((event) => this.#count(session.id, event)),
    );
  }

  #count(sessionId: string, { type, data }: RecordedEvent): void {
    const key = `${sessionId} ${String(data["toolCallId"])}`;
    if (type === "tool.execution_start") this.#running.set(key, { tool: String(data["toolName"]), began: performance.now() });
    if (type !== "tool.execution_complete") return;
    const call = this.#running.get(key);
    this.#running.delete(key);
    if (call === undefined) return;
    const { duration, outcomes } = this.#figuresOf(call.tool);
    duration.add((performance.now() - call.began) / 1000);
    const error = data["error"] as { readonly code?: unknown } | undefined;
    const outcome = data["success"] === true ? "success" : String(error?.code ?? "failure");
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }

  #figuresOf(tool: string): ToolFigures {
    const name = this.#tools.has(tool) || this.#tools.size < maxTools ? tool : others;
    const figures = this.#tools.get(name) ?? { duration: new Histogram(bounds), outcomes: new Map() };
    this.#tools.set(name, figures);
    return figures;
  }
}

/** What every program reports, by the names that Prometheus' own libraries give them. */
export function writeProcessMetrics(text: MetricsText): void {
  const { user, system } = process.cpuUsage();
  text.counter("process_cpu_seconds_total", "Processor time in seconds.", (user + system) / 1e6);
  text.gauge("process_resident_memory_bytes", "Resident memory in bytes.", process.memoryUsage.rss());
  text.gauge("process_start_time_seconds", "When the process was started, in seconds since 1970.", Date.now() / 1000 - process.uptime());
}

function countBy(values: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

import { counted } from "../../base/text.ts";
import { whenAborted } from "../../base/wait.ts";
import type { FeedMessage } from "../../servers/inspector/feed-messages.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../terminal-style.ts";

/** Serves the export of a session until it is stopped, or prints what happens at a running inspector until that ends. */
export async function inspect(context: CommandContext, source: string, options: { readonly port?: number }): Promise<number> {
  return /^https?:/i.test(source) ? follow(context, source) : serve(context, source, options);
}

async function serve({ io, out }: CommandContext, file: string, { port }: { readonly port?: number }): Promise<number> {
  const { serveExport } = await import("../../servers/inspector/exported-session.ts");
  await using inspector = await serveExport(file, { port });
  if (out.isJson) out.envelope({ ok: true, data: { url: inspector.url }, diagnostics: [] });
  else out.line(`Inspector: ${inspector.url}`);
  out.note("Press Ctrl-C to stop.");
  await whenAborted(io.signal);
  return 0;
}

async function follow({ io, out }: CommandContext, address: string): Promise<number> {
  const { followFeed } = await import("../../servers/inspector/follow-feed.ts");
  try {
    for await (const message of followFeed(address, io.signal)) {
      if (out.isJson) out.json(message);
      else for (const line of linesOf(message)) out.line(visibleLine(line));
    }
  } catch (error) {
    if (!io.signal.aborted) throw error;
  }
  out.note(io.signal.aborted ? "Stopped." : "The host has ended.");
  return 0;
}

function linesOf(message: FeedMessage): readonly string[] {
  if (message.type === "alive" || message.type === "catalog" || message.type === "ask.settled") return [];
  const time = new Date(message.at).toTimeString().slice(0, 8);
  return describe(message).map((line) => `${time} ${line}`);
}

const maxDiffLines = 20;

type Named = readonly { readonly name: string }[];

function changesOf(outcome: Readonly<Partial<Record<"added" | "updated" | "removed" | "failed", Named>>>): string {
  const { added = [], updated = [], removed = [], failed = [] } = outcome;
  const changes = Object.entries({ added, updated, removed, failed }).flatMap(([what, parts]) =>
    parts.map(({ name }) => `${name} ${what}`),
  );
  return changes.join(", ") || "nothing changed";
}

function describe(message: FeedMessage): readonly string[] {
  switch (message.type) {
    case "snapshot": {
      const { skills, tools, sessions, servers, diagnostics, host, pins } = message;
      const counts = [
        counted(skills.length, "skill"),
        counted(tools.length, "tool"),
        counted(sessions.length, "session"),
        counted(servers.length, "MCP server"),
        counted(diagnostics.length, "problem"),
        ...(pins.length > 0 ? [counted(pins.length, "stored call")] : []),
      ];
      return [`${host.workingDirectory} (process ${host.pid}): ${counts.join(", ")}`];
    }
    case "reload":
      return [`reload: ${changesOf(message)} (${Math.round(message.durationMs)} ms)`];
    case "plugins.reload":
      return [`reload of plugins: ${changesOf(message)}`];
    case "diagnostics":
      return [
        `problems: ${message.diagnostics.length}`,
        ...message.diagnostics.map(({ severity, code, message: text }) => `  ${severity} ${code} ${text}`),
      ];
    case "session":
      return [`session ${message.session.id} (${message.session.client}): ${message.session.state}`];
    case "session.closed":
      return [`session ${message.sessionId}: closed`];
    case "event":
      return [`${message.sessionId.slice(0, 8)} ${message.event.type} ${JSON.stringify(message.event.data).slice(0, 160)}`];
    case "ask":
      return [`${message.ask.sessionId.slice(0, 8)} asks for ${message.ask.kind}: ${JSON.stringify(message.ask.data).slice(0, 160)}`];
    case "call":
      return message.call.state === "running" ? [] : [`call ${message.call.tool}: ${message.call.result?.code ?? message.call.state}`];
    case "server":
      return [`server ${message.server.name}: ${message.server.status}`];
    case "server.removed":
      return [`server ${message.name}: removed`];
    case "traffic":
      return [`server ${message.traffic.server} ${message.traffic.direction} ${message.traffic.method ?? message.traffic.rpcId ?? ""}`];
    case "pins":
      return [`stored calls: ${message.pins.length}`, ...(message.problem?.split("\n") ?? []).map((line) => `  ${line}`)];
    case "pin.run": {
      const { outcome, durationMs, reasons, diff } = message.run;
      const head = `stored call ${message.pinId}: ${outcome} (${Math.round(durationMs)} ms)`;
      return [head, ...[...reasons, ...diff.slice(0, maxDiffLines)].map((line) => `  ${line}`)];
    }
    case "dropped":
      return [`${message.count} messages were missed`];
    default:
      return [message.type];
  }
}

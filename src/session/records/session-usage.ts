import type { SessionEvent } from "./events.ts";

interface UsageSummary {
  readonly totalApiDurationMs: number;
  readonly codeChanges: { readonly linesAdded: number; readonly linesRemoved: number; readonly filesModified: readonly string[] };
  readonly modelMetrics: Readonly<Record<string, object>>;
}

interface Metric {
  requests: { count: number; cost: number };
  usage: { inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number };
}

/** More are not kept: a list of them is for people. */
const maxFiles = 10_000;

/** What a session's models took, as their endpoints counted it, and the files that its tools said they changed. */
export class SessionUsage {
  readonly startedAt: Date = new Date();
  readonly #models = new Map<string, Metric>();
  readonly #files = new Set<string>();
  #userRequests = 0;
  #durationMs = 0;
  #last = { input: 0, output: 0 };

  hear({ type, data, agentId }: SessionEvent): void {
    if (type !== "assistant.usage") return;
    const model = String(data["model"]);
    const metric = this.#models.get(model) ?? newMetric();
    this.#models.set(model, metric);
    metric.requests.count++;
    for (const key of Object.keys(metric.usage) as (keyof Metric["usage"])[]) metric.usage[key] += countOf(data[key]);
    if (data["initiator"] === "user") this.#userRequests++;
    this.#durationMs += countOf(data["duration"]);
    if (agentId === undefined) this.#last = { input: countOf(data["inputTokens"]), output: countOf(data["outputTokens"]) };
  }

  fileChanged(path: string): void {
    if (this.#files.size < maxFiles) this.#files.add(path);
  }

  /** As the end of a session is told. Lines are not counted: tools say which files they changed, and not how. */
  get summary(): UsageSummary {
    return {
      totalApiDurationMs: Math.round(this.#durationMs),
      codeChanges: { linesAdded: 0, linesRemoved: 0, filesModified: [...this.#files] },
      modelMetrics: Object.fromEntries(this.#models),
    };
  }

  /** As it is told while the session is open. */
  get metrics(): object {
    const { codeChanges, ...summary } = this.summary;
    return {
      ...summary,
      totalPremiumRequestCost: 0,
      totalUserRequests: this.#userRequests,
      sessionStartTime: this.startedAt.toISOString(),
      codeChanges: { ...codeChanges, filesModifiedCount: codeChanges.filesModified.length },
      lastCallInputTokens: this.#last.input,
      lastCallOutputTokens: this.#last.output,
    };
  }
}

function newMetric(): Metric {
  return { requests: { count: 0, cost: 0 }, usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 } };
}

function countOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

import type { SessionEvent } from "../../../session/records/events.ts";

interface Metric {
  requests: { count: number; cost: number };
  usage: { inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number };
}

/** What a session's models took, as their endpoints counted it. */
export class SessionUsage {
  readonly #models = new Map<string, Metric>();
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

  get metrics(): object {
    return {
      totalUserRequests: this.#userRequests,
      totalApiDurationMs: this.#durationMs,
      modelMetrics: Object.fromEntries(this.#models),
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

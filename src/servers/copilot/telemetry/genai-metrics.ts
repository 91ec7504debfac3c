import { now, type SpanAttributes, type SpanTime } from "./span.ts";

/** The instruments of the conventions for generative AI, and the official runtime's own. */
const instruments: Readonly<Record<InstrumentName, Instrument>> = {
  "gen_ai.client.operation.duration": { description: "GenAI operation duration.", unit: "s", boundaries: doubling(0.01, 14) },
  "gen_ai.client.token.usage": {
    description: "Number of input and output tokens used.",
    unit: "{token}",
    boundaries: Array.from({ length: 14 }, (_, index) => 4 ** index),
  },
  "gen_ai.invoke_agent.duration": {
    description: "The end-to-end duration of a single agent invocation.",
    unit: "s",
    boundaries: doubling(0.1, 13),
  },
  "gen_ai.invoke_agent.inference_calls": {
    description: "The number of inference (model) calls a GenAI agent makes during a single invocation.",
    unit: "{inference_call}",
    boundaries: [0, ...doubling(1, 9)],
  },
  "gen_ai.invoke_agent.tool_calls": {
    description: "The number of tool calls a GenAI agent makes during a single invocation.",
    unit: "{tool_call}",
    boundaries: [0, ...doubling(1, 9)],
  },
  "gen_ai.execute_tool.duration": { description: "The duration of a single tool execution.", unit: "s", boundaries: doubling(0.01, 14) },
  "github.copilot.tool.call.count": { description: "Number of tool invocations by tool name and outcome.", unit: "{call}" },
  "github.copilot.tool.call.duration": { description: "Tool execution latency.", unit: "s", boundaries: doubling(0.01, 14) },
  "github.copilot.agent.turn.count": {
    description: "Number of LLM round-trips per agent invocation.",
    unit: "{turn}",
    boundaries: [0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000],
  },
  "github.copilot.mcp.server.connection.count": {
    description: "Number of completed MCP server connection attempts by transport and outcome.",
    unit: "{attempt}",
  },
};

interface Instrument {
  readonly description: string;
  readonly unit: string;
  /** Absent: a counter. */
  readonly boundaries?: readonly number[];
}

type InstrumentName =
  | "gen_ai.client.operation.duration"
  | "gen_ai.client.token.usage"
  | "gen_ai.invoke_agent.duration"
  | "gen_ai.invoke_agent.inference_calls"
  | "gen_ai.invoke_agent.tool_calls"
  | "gen_ai.execute_tool.duration"
  | "github.copilot.tool.call.count"
  | "github.copilot.tool.call.duration"
  | "github.copilot.agent.turn.count"
  | "github.copilot.mcp.server.connection.count";

function doubling(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => Number((first * 2 ** index).toPrecision(12)));
}

/** The most sets of attributes of one instrument, as OpenTelemetry limits them: names of tools come from models. */
const mostSets = 2_000;
const overflow: SpanAttributes = { "otel.metric.overflow": true };

interface DataPoint {
  readonly attributes: SpanAttributes;
  count: number;
  sum: number;
  min: number;
  max: number;
  readonly counts: number[];
}

/** Counts and histograms since the start of the process. */
export class GenAiMetrics {
  readonly #startTime: SpanTime = now();
  readonly #points = new Map<InstrumentName, Map<string, DataPoint>>();
  #hasChanged = false;

  record(name: InstrumentName, value: number, attributes: SpanAttributes): void {
    this.#hasChanged = true;
    const { boundaries }: Instrument = instruments[name];
    const point = this.#pointOf(name, attributes, boundaries);
    point.count += 1;
    point.sum += value;
    point.min = Math.min(point.min, value);
    point.max = Math.max(point.max, value);
    if (boundaries === undefined) return;
    const above = boundaries.findIndex((boundary) => value <= boundary);
    point.counts[above === -1 ? boundaries.length : above]! += 1;
  }

  /** The current values as records of the file; none when nothing has changed since the last time. */
  collect(): readonly object[] {
    if (!this.#hasChanged) return [];
    this.#hasChanged = false;
    const endTime = now();
    return (Object.entries(instruments) as [InstrumentName, Instrument][]).flatMap(([name, { description, unit, boundaries }]) => {
      const points = this.#points.get(name);
      if (points === undefined) return [];
      const dataPoints = [...points.values()].map((point) => ({
        attributes: point.attributes,
        startTime: this.#startTime,
        endTime,
        value: boundaries === undefined ? point.sum : histogram(point, boundaries),
      }));
      return [{ type: "metric", name, description, unit, dataPoints }];
    });
  }

  #pointOf(name: InstrumentName, given: SpanAttributes, boundaries: readonly number[] = []): DataPoint {
    const points = this.#points.get(name) ?? new Map<string, DataPoint>();
    this.#points.set(name, points);
    const isKnown = points.size < mostSets || points.has(JSON.stringify(given));
    const attributes = isKnown ? given : overflow;
    const key = JSON.stringify(attributes);
    const known = points.get(key);
    if (known !== undefined) return known;
    const counts = Array.from({ length: boundaries.length + 1 }, () => 0);
    const point = { attributes, count: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY, counts };
    points.set(key, point);
    return point;
  }
}

function histogram({ count, sum, min, max, counts }: DataPoint, boundaries: readonly number[]): object {
  return { buckets: { boundaries, counts }, count, sum, min, max };
}

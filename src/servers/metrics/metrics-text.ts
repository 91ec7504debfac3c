type Labels = Readonly<Record<string, string>>;

/**
 * Metrics in the text format that Prometheus and OpenTelemetry collectors read:
 * https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4). The values of one metric are added one after the other.
 */
export class MetricsText {
  readonly #lines: string[] = [];
  #last = "";

  /** What only rises. Its name ends with `_total`. */
  counter(name: string, help: string, value: number, labels?: Labels): this {
    return this.#add("counter", { name, help, value, labels });
  }

  gauge(name: string, help: string, value: number, labels?: Labels): this {
    return this.#add("gauge", { name, help, value, labels });
  }

  histogram(name: string, help: string, { bounds, counts, sum, count }: Histogram, labels: Labels = {}): this {
    this.#head(name, help, "histogram");
    let below = 0;
    for (const [index, bound] of bounds.entries()) {
      below += counts[index] ?? 0;
      this.#line(`${name}_bucket`, below, { ...labels, le: String(bound) });
    }
    this.#line(`${name}_bucket`, count, { ...labels, le: "+Inf" });
    this.#line(`${name}_sum`, sum, labels);
    this.#line(`${name}_count`, count, labels);
    return this;
  }

  toString(): string {
    return this.#lines.map((line) => `${line}\n`).join("");
  }

  #add(type: string, { name, help, value, labels = {} }: Metric): this {
    this.#head(name, help, type);
    this.#line(name, value, labels);
    return this;
  }

  #head(name: string, help: string, type: string): void {
    if (this.#last === name) return;
    this.#last = name;
    this.#lines.push(`# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`, `# TYPE ${name} ${type}`);
  }

  #line(name: string, value: number, labels: Labels): void {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`);
    this.#lines.push(`${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}`);
  }
}

interface Metric {
  readonly name: string;
  readonly help: string;
  readonly value: number;
  readonly labels: Labels | undefined;
}

/** How many values lie at or below each bound, and above the one before. */
export class Histogram {
  readonly bounds: readonly number[];
  readonly counts: number[];
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = bounds.map(() => 0);
  }

  add(value: number): void {
    this.sum += value;
    this.count++;
    const index = this.bounds.findIndex((bound) => value <= bound);
    if (index >= 0) this.counts[index]!++;
  }
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

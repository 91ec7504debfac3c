import { type Diagnostic, formatDiagnostic } from "../base/diagnostic.ts";
import type { Logger } from "../base/logger.ts";

interface DiagnosticFeedOptions {
  /** All current problems. */
  all(): readonly Diagnostic[];
  emit(diagnostic: Diagnostic): void;
  /** Whether it is logged elsewhere. */
  isLogged(diagnostic: Diagnostic): boolean;
  readonly log: Logger;
}

/** Emits each diagnostic once while it persists: those at the start of the host, and new ones after each change. */
export class DiagnosticFeed {
  readonly #options: DiagnosticFeedOptions;
  #known: ReadonlySet<string> = new Set();
  #state: "starting" | "open" | "closed" = "starting";
  #scheduled: NodeJS.Immediate | undefined;

  constructor(options: DiagnosticFeedOptions) {
    this.#options = options;
  }

  /** Begins to emit, after the host has started. */
  begin(): void {
    if (this.#state !== "starting") return;
    this.#state = "open";
    this.#emitNew();
  }

  /** Schedules a comparison after a change. Changes of one turn of the event loop share it. */
  changed(): void {
    if (this.#state !== "open" || this.#scheduled !== undefined) return;
    this.#scheduled = setImmediate(() => {
      this.#scheduled = undefined;
      this.#emitNew();
    });
  }

  /** Emits a diagnostic at once. */
  report(diagnostic: Diagnostic): void {
    this.#known = new Set([...this.#known, keyOf(diagnostic)]);
    this.#emit(diagnostic);
  }

  close(): void {
    this.#state = "closed";
    clearImmediate(this.#scheduled);
  }

  #emitNew(): void {
    if (this.#state !== "open") return;
    const now = new Map(this.#options.all().map((diagnostic) => [keyOf(diagnostic), diagnostic]));
    const before = this.#known;
    this.#known = new Set(now.keys());
    for (const [key, diagnostic] of now) if (!before.has(key)) this.#emit(diagnostic);
  }

  #emit(diagnostic: Diagnostic): void {
    const { emit, isLogged, log } = this.#options;
    const { severity, message, ...rest } = diagnostic;
    if (!isLogged(diagnostic)) log[severity](message, { diagnostic: rest });
    emit(diagnostic);
  }
}

// Each change compares all diagnostics, most of which are the same objects as before.
const keys = new WeakMap<Diagnostic, string>();

function keyOf(diagnostic: Diagnostic): string {
  const known = keys.get(diagnostic);
  if (known !== undefined) return known;
  const key = JSON.stringify(diagnostic);
  keys.set(diagnostic, key);
  return key;
}

/** The problems of a host that belong to no skill or plugin. Each is kept once. */
export class HostProblems {
  readonly #found = new Map<string, Diagnostic>();
  readonly #emit: (diagnostic: Diagnostic) => void;

  constructor(emit: (diagnostic: Diagnostic) => void) {
    this.#emit = emit;
  }

  get all(): readonly Diagnostic[] {
    return [...this.#found.values()];
  }

  readonly report = (diagnostic: Diagnostic): void => {
    this.#found.set(formatDiagnostic(diagnostic), diagnostic);
    this.#emit(diagnostic);
  };

  /** Keeps only the current problem of a log, and emits its end too. */
  readonly reportLog = (diagnostic: Diagnostic): void => {
    if (diagnostic.severity !== "info") {
      this.report(diagnostic);
      return;
    }
    this.forget(diagnostic.file === undefined ? [] : [diagnostic.file]);
    this.#emit(diagnostic);
  };

  /** Forgets the problems of changed files. Those that persist are reported again. */
  readonly forget = (files: readonly string[]): void => {
    for (const [key, { file }] of this.#found) if (file !== undefined && files.includes(file)) this.#found.delete(key);
  };
}

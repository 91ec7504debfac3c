import { type Diagnostic, formatDiagnostic } from "../base/diagnostic.ts";
import type { Logger } from "../base/logger.ts";

interface DiagnosticFeedOptions {
  /** All that is wrong at the moment. */
  all(): readonly Diagnostic[];
  tell(diagnostic: Diagnostic): void;
  /** Whether somebody else logs it. */
  isLogged(diagnostic: Diagnostic): boolean;
  readonly log: Logger;
}

/** Tells each diagnostic once for as long as it holds: what is there when the host has started, and what each change brings. */
export class DiagnosticFeed {
  readonly #options: DiagnosticFeedOptions;
  #known: ReadonlySet<string> = new Set();
  #state: "starting" | "open" | "closed" = "starting";
  #scheduled: NodeJS.Immediate | undefined;

  constructor(options: DiagnosticFeedOptions) {
    this.#options = options;
  }

  /** The host has started. */
  begin(): void {
    if (this.#state !== "starting") return;
    this.#state = "open";
    this.#look();
  }

  /** Something may be wrong that was not, or the other way round: it is looked at once for all that changes now. */
  changed(): void {
    if (this.#state !== "open" || this.#scheduled !== undefined) return;
    this.#scheduled = setImmediate(() => {
      this.#scheduled = undefined;
      this.#look();
    });
  }

  /** Tells one that was just found. */
  report(diagnostic: Diagnostic): void {
    this.#known = new Set([...this.#known, keyOf(diagnostic)]);
    this.#tell(diagnostic);
  }

  close(): void {
    this.#state = "closed";
    clearImmediate(this.#scheduled);
  }

  #look(): void {
    if (this.#state !== "open") return;
    const now = new Map(this.#options.all().map((diagnostic) => [keyOf(diagnostic), diagnostic]));
    const before = this.#known;
    this.#known = new Set(now.keys());
    for (const [key, diagnostic] of now) if (!before.has(key)) this.#tell(diagnostic);
  }

  #tell(diagnostic: Diagnostic): void {
    const { tell, isLogged, log } = this.#options;
    const { severity, message } = diagnostic;
    if (!isLogged(diagnostic)) log[severity](message, { diagnostic: withoutMessage(diagnostic) });
    tell(diagnostic);
  }
}

// What did not change keeps its diagnostics, and every change looks at all of them.
const keys = new WeakMap<Diagnostic, string>();

function keyOf(diagnostic: Diagnostic): string {
  const known = keys.get(diagnostic);
  if (known !== undefined) return known;
  const key = JSON.stringify(diagnostic);
  keys.set(diagnostic, key);
  return key;
}

function withoutMessage({ message: _, ...rest }: Diagnostic): Omit<Diagnostic, "message"> {
  return rest;
}

/** What is wrong with a host that no skill's or plugin's own diagnostics tell, each once. */
export class HostProblems {
  readonly #found = new Map<string, Diagnostic>();
  readonly #tell: (diagnostic: Diagnostic) => void;

  constructor(tell: (diagnostic: Diagnostic) => void) {
    this.#tell = tell;
  }

  get all(): readonly Diagnostic[] {
    return [...this.#found.values()];
  }

  readonly report = (diagnostic: Diagnostic): void => {
    this.#found.set(formatDiagnostic(diagnostic), diagnostic);
    this.#tell(diagnostic);
  };

  /** Of a log only the trouble of now is listed; its end is told, too. */
  readonly reportLog = (diagnostic: Diagnostic): void => {
    if (diagnostic.severity !== "info") {
      this.report(diagnostic);
      return;
    }
    this.forget(diagnostic.file === undefined ? [] : [diagnostic.file]);
    this.#tell(diagnostic);
  };

  /** What was wrong with a file that has changed is reported anew if it still is. */
  readonly forget = (files: readonly string[]): void => {
    for (const [key, { file }] of this.#found) if (file !== undefined && files.includes(file)) this.#found.delete(key);
  };
}

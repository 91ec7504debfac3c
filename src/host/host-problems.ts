import { type Diagnostic, formatDiagnostic } from "../base/diagnostic.ts";

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

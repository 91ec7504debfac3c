/**
 * Thrown for misuse and internal failures. Branch on `code`, which is stable; `message` is for people. Expected failures (a bad
 * file, an unknown tool, a denied call) are never thrown: they are a `Diagnostic` or a `ToolResult`.
 */
export class HostError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HostError";
    this.code = code;
  }
}

/** Converts any thrown value to an `Error`. Never throws. */
export function toError(value: unknown): Error {
  try {
    if (value instanceof Error) return value;
    return new Error(typeof value === "string" ? value : `A value that is not an Error was thrown: ${String(value)}`, { cause: value });
  } catch {
    // A proxy, or an object whose toString throws.
    return new Error("A value that cannot be shown was thrown.");
  }
}

/** The message of a thrown value, for diagnostics and logs. Never send it to a model. */
export function errorMessage(value: unknown): string {
  const error = toError(value);
  try {
    const advice = adviceOf(error);
    return `${error.message || error.name}${advice === undefined ? "" : ` (${advice})`}`;
  } catch {
    // A hostile error whose message is a throwing getter.
    return "An error whose message cannot be read.";
  }
}

/** Whether the limit of open files was reached, which is not a fault of the file. */
export function isOutOfFiles(error: unknown): boolean {
  return adviceOf(error) !== undefined;
}

function adviceOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? outOfFiles.get(code) : undefined;
}

const outOfFiles: ReadonlyMap<string, string> = new Map([
  ["EMFILE", 'raise the limit on open files of this process, for example with "ulimit -n 4096", and start it again'],
  ["ENFILE", "close other programs, or raise the limit on open files of this system, which is fs.file-max on Linux"],
]);

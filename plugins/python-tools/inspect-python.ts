import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What the text of a Python file contains. */
export type InspectedPython =
  | { readonly kind: "parsed"; readonly tools: readonly PythonTool[]; readonly isComputed: boolean }
  | { readonly kind: "faulty"; readonly code: string; readonly message: string; readonly line?: number; readonly column?: number }
  /** No suitable Python was found. */
  | { readonly kind: "unread" };

interface PythonTool {
  readonly name: string;
  readonly description: string | null;
  readonly line: number;
}

interface Answer {
  readonly tools?: readonly PythonTool[];
  readonly isComputed?: boolean;
  readonly fault?: { readonly kind: string; readonly message: string; readonly line?: number | null; readonly column?: number | null };
}

const script = fileURLToPath(new URL("./worker/skillhost/_inspect.py", import.meta.url));
const workerFolder = fileURLToPath(new URL("./worker/", import.meta.url));
const names = process.platform === "win32" ? ["python3", "python", "py"] : ["python3", "python"];

/**
 * Parses a Python file without running it. Uses the Python in PATH, since a skill's virtual environment could run code of
 * the skill.
 */
export async function inspectPython(file: string, signal: AbortSignal): Promise<InspectedPython> {
  for (const name of names) {
    const answer = await ask(name, file, signal);
    if (answer !== undefined) return read(answer);
  }
  return { kind: "unread" };
}

/** Isolated, without packages and without writing files: loads only the standard library and the script. */
function ask(python: string, file: string, signal: AbortSignal): Promise<Answer | undefined> {
  const options = { cwd: workerFolder, timeout: 30_000, maxBuffer: 4 * 1024 * 1024, windowsHide: true, signal };
  return new Promise((resolve, reject) => {
    execFile(python, ["-I", "-S", "-B", script, file], options, (error, stdout) => {
      if (signal.aborted) reject(signal.reason as Error);
      else if (error === null) resolve(JSON.parse(stdout) as Answer);
      else resolve(undefined);
    });
  });
}

function read({ tools = [], isComputed = false, fault }: Answer): InspectedPython {
  if (fault === undefined) return { kind: "parsed", tools, isComputed };
  const { kind, message, line, column } = fault;
  const isSyntax = kind === "syntax";
  return {
    kind: "faulty",
    code: isSyntax ? "PYTHON_SYNTAX" : "PYTHON_THREW",
    message: isSyntax ? `This file does not parse: ${message}.` : `This file would fail while it is loaded: ${message}`,
    ...(line != null && { line, column: Math.max(1, column ?? 1) }),
  };
}

import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { isRecord } from "../../base/json.ts";
import type { TestedCase } from "./test-report.ts";

/** An event of Node's test runner, as far as it is read here. */
interface TestEvent {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string | undefined;
}

interface EndedTest extends TestEvent {
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly details: { readonly duration_ms: number; readonly type?: string; readonly error?: unknown };
}

const longestMessage = 2_000;
const longestHeard = 4_000;

/** Collects the outcome of a run from the events of Node's test runner, which arrive in the order of the report. */
export class TestCollection {
  readonly tests: TestedCase[] = [];
  /** The names of the suites and tests that are open, by their depth. */
  readonly #open: string[] = [];
  /** The end of what each file wrote to stderr, which says why a file failed as a whole. */
  readonly #heard = new Map<string, string>();

  start({ name, nesting }: TestEvent): void {
    this.#open.length = nesting;
    this.#open[nesting] = name;
  }

  hear(file: string | undefined, text: string): void {
    if (file !== undefined) this.#heard.set(file, `${this.#heard.get(file) ?? ""}${text}`.slice(-longestHeard));
  }

  add(event: EndedTest, status: TestedCase["status"]): void {
    const { name, nesting, file = name, details } = event;
    const error = unwrapped(details.error);
    // What failed inside is reported for itself.
    if (details.type === "suite" && (status !== "failed" || error.isOfChildren)) return;
    if (status === "failed" && error.isOfChildren) return;
    const isWhole = resolve(name) === file;
    const heard = isWhole ? stripVTControlCharacters(this.#heard.get(file) ?? "").trim() : "";
    const message = heard === "" ? error.message : heard;
    this.tests.push({
      file,
      name: isWhole ? file : [...this.#open.slice(0, nesting), name].join(" > "),
      status,
      durationMs: Math.round(details.duration_ms * 1000) / 1000,
      ...(status === "failed" && {
        ...placeOf(heard === "" ? error.stack : heard, event, file),
        message: message.slice(0, longestMessage),
      }),
    });
  }
}

/** The error that the test threw: the runner wraps it. */
function unwrapped(error: unknown): { readonly message: string; readonly stack: string; readonly isOfChildren: boolean } {
  if (!isRecord(error)) return { message: String(error ?? ""), stack: "", isOfChildren: false };
  const isOfChildren = error["failureType"] === "subtestsFailed";
  const { cause } = error;
  const thrown = isRecord(cause) ? cause : error;
  const message = typeof cause === "string" ? cause : thrown["message"];
  return { message: String(message), stack: typeof thrown["stack"] === "string" ? thrown["stack"] : "", isOfChildren };
}

type Place = Pick<TestedCase, "line" | "column">;

/** Where the test failed: the innermost frame in its file. Of compiled files only the stack has places in the source. */
function placeOf(stack: string, { line, column }: EndedTest, file: string): Place {
  for (const [, address = "", at, where] of stack.matchAll(/\(?((?:file:\/\/|[A-Za-z]:[\\/]|\/)[^\n()]*?):(\d+):(\d+)\)?$/gm)) {
    const path = address.startsWith("file:") ? fileURLToPath(address) : address;
    if (path === file) return { line: Number(at), column: Number(where) };
  }
  const isCompiled = /\.[cm]?ts$/.test(file);
  return isCompiled || line === undefined ? {} : { line, ...(column !== undefined && { column }) };
}

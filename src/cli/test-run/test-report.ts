import { counted } from "../../base/text.ts";
import type { Output } from "../output.ts";
import { visibleLine, visibleText } from "../terminal-style.ts";

/** What a run of tests prints: the readable report of Node.js, its JUnit XML, or the outcome as one JSON document. */
export const reporters = ["spec", "junit", "json"] as const;
export type TestReporter = (typeof reporters)[number];

/** One test after its run. */
export interface TestedCase {
  /** The absolute path of its file. */
  readonly file: string;
  /** With the names of the suites and tests around it: `weather > in a city`. That of a file which failed as a whole is its path. */
  readonly name: string;
  readonly status: "passed" | "failed" | "skipped" | "todo";
  readonly durationMs: number;
  /** The place of the failure in the file, if it is known. */
  readonly line?: number;
  readonly column?: number;
  readonly message?: string;
}

/** The outcome of all files. */
export interface TestRun {
  readonly files: readonly string[];
  readonly counts: Readonly<Record<"tests" | TestedCase["status"], number>>;
  readonly durationMs: number;
  readonly tests: readonly TestedCase[];
}

export function countTests(tests: readonly TestedCase[]): TestRun["counts"] {
  const of = (status: TestedCase["status"]): number => tests.filter((each) => each.status === status).length;
  return { tests: tests.length, passed: of("passed"), failed: of("failed"), skipped: of("skipped"), todo: of("todo") };
}

/** What failed where, and the counts. */
export function summaryLines({ files, counts, durationMs, tests }: TestRun, { style, path }: Output): readonly string[] {
  const failures = tests.filter(({ status }) => status === "failed");
  const parts = [
    counts.failed > 0 && style.red(`${counts.failed} failed`),
    counts.passed > 0 && style.green(`${counts.passed} passed`),
    counts.skipped > 0 && `${counts.skipped} skipped`,
    counts.todo > 0 && `${counts.todo} to do`,
  ].filter((part) => part !== false);
  return [
    ...failures.flatMap((test) => failureLines(test, { style, path })),
    `${counted(counts.tests, "test")} in ${counted(files.length, "file")}: ${parts.join(", ") || "none"} (${Math.round(durationMs)} ms).`,
  ];
}

function failureLines({ file, name, line, column, message = "" }: TestedCase, { style, path }: Pick<Output, "style" | "path">): string[] {
  const place = line === undefined ? path(file) : `${path(file)}:${line}:${column ?? 1}`;
  const called = name === file ? "the file" : visibleLine(name);
  const indented = visibleText(message).trim().split("\n");
  return [`${style.red(style.marks.failed)} ${style.bold(place)}  ${called}`, ...indented.map((text) => `    ${text}`)];
}

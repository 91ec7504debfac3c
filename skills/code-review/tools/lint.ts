import { setImmediate } from "node:timers/promises";
import type { ToolContext, ToolInvocation } from "skillhost";
import { collectFiles, loadSource, type SourceFile } from "../lint/files.ts";
import type { Finding } from "../lint/finding.ts";
import { AsyncExports } from "../lint/imports.ts";
import { findTooDeep, isSurelyShallow } from "../lint/nesting.ts";
import { rules as allRules } from "../lint/registry.ts";
import { assembleReport, formatReport, type Report } from "../lint/report.ts";
import type { Rule } from "../lint/rule.ts";
import { lintText } from "../lint/run.ts";

interface LintArguments {
  readonly path: string;
  readonly rules?: readonly string[];
  readonly maxFindings?: number;
}

/** An MCP CallToolResult: text for the model, the same as data for programs. */
interface LintResult {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly structuredContent?: Report;
  readonly isError?: boolean;
}

/** The handler of lint.json: checks a file, or every source file below a folder. */
export default async function lint(
  args: LintArguments,
  invocation: Pick<ToolInvocation, "workingDirectory" | "signal">,
  context?: Pick<ToolContext, "progress">,
): Promise<LintResult> {
  const rules = args.rules?.length ? allRules.filter((rule) => args.rules?.includes(rule.name)) : allRules;
  const unknown = args.rules?.filter((name) => !allRules.some((rule) => rule.name === name)) ?? [];
  if (unknown.length > 0)
    return failure(
      `There is no rule ${unknown.map((name) => `"${name}"`).join(", ")}. The rules are: ${allRules.map((rule) => rule.name).join(", ")}.`,
    );
  const collected = await collectFiles(invocation.workingDirectory, args.path, invocation.signal);
  if (!collected.ok) return failure(collected.reason);
  const checked = await checkFiles(collected.files, { rules, root: invocation.workingDirectory, signal: invocation.signal, context });
  const report = assembleReport(checked.count, checked.findings, {
    limit: args.maxFindings ?? 100,
    skipped: checked.skipped,
    truncated: collected.truncated,
  });
  return { content: [{ type: "text", text: formatReport(report) }], structuredContent: report };
}

function failure(text: string): LintResult {
  return { content: [{ type: "text", text }], isError: true };
}

interface CheckOptions {
  readonly rules: readonly Rule[];
  readonly root: string;
  readonly signal: AbortSignal;
  readonly context: Pick<ToolContext, "progress"> | undefined;
}

interface Checked {
  count: number;
  readonly findings: Finding[];
  readonly skipped: { file: string; reason: string }[];
}

async function checkFiles(files: readonly SourceFile[], options: CheckOptions): Promise<Checked> {
  const { rules, root, signal, context } = options;
  const checked: Checked = { count: 0, findings: [], skipped: [] };
  const exports = new AsyncExports(root);
  const check = (file: SourceFile, text: string): void => {
    const { findings, skipped } = lintText(file.path, text, { rules, isAsyncImport: exports.from(file.absolute) });
    if (skipped === undefined) checked.count++;
    else checked.skipped.push({ file: file.path, reason: skipped });
    checked.findings.push(...findings);
  };
  const doubtful: { file: SourceFile; text: string }[] = [];
  for (const [index, file] of files.entries()) {
    await turn(signal);
    const loaded = await loadSource(file);
    if (!loaded.ok) checked.skipped.push({ file: file.path, reason: loaded.reason });
    else if (isSurelyShallow(loaded.text)) check(file, loaded.text);
    else doubtful.push({ file, text: loaded.text });
    if (index % 50 === 49) context?.progress({ message: "Checking files", progress: index + 1, total: files.length });
  }
  await checkDoubtful(doubtful, { check, skipped: checked.skipped, signal });
  checked.findings.sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0));
  return checked;
}

/** Files that might nest too deeply for the parser are tried in another process before they are parsed in this one. */
async function checkDoubtful(
  doubtful: readonly { file: SourceFile; text: string }[],
  options: { check: (file: SourceFile, text: string) => void; skipped: Checked["skipped"]; signal: AbortSignal },
): Promise<void> {
  if (doubtful.length === 0) return;
  const tooDeep = await findTooDeep(
    doubtful.map(({ file }) => file),
    options.signal,
  );
  for (const { file, text } of doubtful) {
    await turn(options.signal);
    if (tooDeep.has(file.path)) options.skipped.push({ file: file.path, reason: "nested too deeply to parse" });
    else options.check(file, text);
  }
}

/** Checking is work for the processor: between files, others get their turn, and a cancelled call ends. */
async function turn(signal: AbortSignal): Promise<void> {
  await setImmediate();
  signal.throwIfAborted();
}

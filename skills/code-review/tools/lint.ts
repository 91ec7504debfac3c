import { realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { defineTool, type PermissionRequest, parseCommandLine, type ToolContext } from "skillhost";
import { syntaxCheck } from "./_linters.ts";
import { type Plan, planChecks, type Target } from "./_plan-checks.ts";
import { type Finding, runCheck } from "./_run-check.ts";

interface LintArguments {
  readonly paths?: readonly string[];
}

const severities = ["error", "warning", "info"];
const maxTextBytes = 32 * 1024;

/** A call runs what it got permission for, even if the project changes while the user decides. */
const permitted = new WeakMap<ToolContext, Plan>();

export default defineTool<LintArguments>("lint", {
  title: "Lint",
  description:
    "Runs the linters that the project itself has set up (oxlint, Biome, ESLint, Ruff) and lists their findings with file, line, rule, severity and message, errors first. Without a linter it reports only syntax errors of JavaScript and TypeScript. Changes no files. Use it before reviewing or committing code, and again after a fix.",
  parameters: {
    type: "object",
    properties: {
      paths: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        maxItems: 100,
        default: ["."],
        description: "Files and folders to check, relative to the working directory. Default: the whole working directory.",
      },
    },
    required: [],
    additionalProperties: false,
  },
  outputSchema: {
    type: "object",
    properties: {
      findings: {
        type: "array",
        items: {
          type: "object",
          properties: {
            file: { type: "string", description: "Path relative to the working directory." },
            line: { type: "integer" },
            column: { type: "integer" },
            rule: { type: "string" },
            severity: { type: "string", enum: severities },
            message: { type: "string" },
          },
          required: ["file", "line", "rule", "severity", "message"],
        },
      },
      omitted: { type: "integer", description: "Number of findings left out to keep the answer short." },
      linters: { type: "array", items: { type: "string" }, description: "The linters that ran." },
    },
    required: ["findings", "omitted", "linters"],
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
  timeout: 300_000,
  async permission(args, context) {
    const { workingDirectory } = context.invocation;
    const located = await locate(workingDirectory, args.paths);
    if (!located.ok) return { kind: "read", intention: "Lint", path: workingDirectory };
    const plan = await planChecks(located.base, located.targets);
    permitted.set(context, plan);
    return toRequest(plan, located.targets);
  },
  async handler({ paths }, { workingDirectory, signal }, context) {
    const located = await locate(workingDirectory, paths);
    if (!located.ok) return failure(located.reason);
    const plan = permitted.get(context) ?? (await planChecks(located.base, located.targets));
    const findings: Finding[] = [];
    const notes = [...plan.notes];
    const linters: string[] = [];
    for (const check of plan.checks) {
      context.progress({ message: `Running ${check.linter.name}` });
      const outcome = await runCheck(check, located.base, signal);
      signal.throwIfAborted();
      if ("failure" in outcome) notes.push(outcome.failure);
      else {
        linters.push(check.linter.name);
        findings.push(...outcome.findings);
      }
    }
    return linters.length > 0 ? toResult({ findings, linters, notes }) : failure(notes.join("\n\n"));
  },
});

type Located =
  | { readonly ok: true; readonly base: string; readonly targets: readonly Target[] }
  | { readonly ok: false; readonly reason: string };

/** Resolves links. All paths must be in the working directory. */
async function locate(workingDirectory: string, paths: readonly string[] = ["."]): Promise<Located> {
  const base = await realpath(workingDirectory);
  const targets: Target[] = [];
  for (const path of paths) {
    // The answer is the same for a path that does not exist and one that may not be read.
    const real = await realpath(resolve(base, path)).catch(() => undefined);
    if (real === undefined) return { ok: false, reason: `"${path}" was not found in the working directory.` };
    const way = relative(base, real);
    if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way))
      return { ok: false, reason: `"${path}" is outside the working directory. Give a path inside it.` };
    targets.push({ real, isFolder: (await stat(real)).isDirectory() });
  }
  return { ok: true, base, targets };
}

/** Linters are programs of the project, so they need permission for a command. The syntax check only reads. */
function toRequest({ checks }: Plan, targets: readonly Target[]): PermissionRequest {
  const paths = targets.map(({ real }) => real);
  const programs = checks.filter(({ linter }) => linter !== syntaxCheck);
  if (programs.length === 0) return { kind: "read", intention: "Look for syntax errors", path: paths[0], possiblePaths: paths };
  const fullCommandText = programs.map(({ commandLine }) => commandLine).join(" && ");
  const identifiers = new Set(parseCommandLine(fullCommandText).commands.map(([program = ""]) => program));
  return {
    kind: "shell",
    fullCommandText,
    intention: `Lint with ${programs.map(({ linter }) => linter.name).join(", ")}`,
    warning: "Linters, their plugins and their configuration are code of the project. ESLint runs its configuration as a program.",
    commands: [...identifiers].map((identifier) => ({ identifier, readOnly: false })),
    possiblePaths: paths,
    possibleUrls: [],
    hasWriteFileRedirection: false,
    canOfferSessionApproval: true,
  };
}

interface Report {
  readonly findings: readonly Finding[];
  readonly linters: readonly string[];
  readonly notes: readonly string[];
}

/** An MCP CallToolResult with the findings as text for the model and as data for programs. */
function toResult({ findings, linters, notes }: Report): object {
  const sorted = findings.toSorted(
    (a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity) || compare(a.file, b.file) || a.line - b.line,
  );
  const lines = sorted.map(
    ({ file, line, column, rule, severity, message }) =>
      `${file}:${line}${column === undefined ? "" : `:${column}`} ${severity} ${rule}: ${message}`,
  );
  const shownCount = countFitting(lines, maxTextBytes);
  const omitted = lines.length - shownCount;
  const [errors, warnings, infos] = severities.map((severity) => findings.filter((finding) => finding.severity === severity).length);
  const ran = linters.map((name) =>
    name === syntaxCheck.name ? "syntax check only, because the project has no linter for these files" : name,
  );
  const text = [
    ...lines.slice(0, shownCount),
    ...(omitted > 0 ? [`… and ${omitted} more findings. Fix these first, or give fewer paths.`] : []),
    `Errors: ${errors}, warnings: ${warnings}, info: ${infos}. Linters: ${ran.join(", ")}.`,
    ...notes,
  ].join("\n");
  return { content: [{ type: "text", text }], structuredContent: { findings: sorted.slice(0, shownCount), omitted, linters } };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function countFitting(lines: readonly string[], maxBytes: number): number {
  let bytes = 0;
  for (const [index, line] of lines.entries()) {
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > maxBytes) return index;
  }
  return lines.length;
}

function failure(text: string): object {
  return { textResultForLlm: text, resultType: "failure", error: text };
}

import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { type Diagnostic, formatDiagnostic, type Position } from "../../base/diagnostic.ts";
import { readSkillCalls, type SkillCall } from "../../host/stored-calls/skill-calls.ts";
import { StoredCallRunner } from "../../host/stored-calls/stored-call-runner.ts";
import { openTraffic } from "../../testing/record-traffic.ts";
import { type TestHost, testSkill } from "../../testing.ts";
import { visibleText } from "../terminal-style.ts";

interface CallTests {
  readonly tests: readonly { readonly name: string; run(context: TestContext): Promise<void> }[];
  close(): Promise<void>;
}

/** The stored calls of a skill as tests of Node's test runner, one each, and one that fails for each fault of the file. */
export async function openCallTests(file: string): Promise<CallTests> {
  const folder = dirname(file);
  // As a recording that a test beside the file would have.
  const traffic = await openTraffic(join(folder, "calls.recording.json"));
  const host = await testSkill(folder, { session: { largeOutput: { enabled: false } } });
  const { name = "" } = host.host.skills.find((skill) => skill.folder === folder) ?? host.host.skills[0] ?? {};
  const { calls, diagnostics } = readSkillCalls({ name, folder });
  const runner = new StoredCallRunner(host.session);
  let havePassed = true;
  const failing = (problem: Error): never => {
    havePassed = false;
    throw problem;
  };
  for (const problem of diagnostics) if (problem.severity !== "error") process.stderr.write(`${formatDiagnostic(problem)}\n`);
  return {
    tests: [
      ...diagnostics.flatMap((problem) =>
        problem.severity === "error"
          ? [{ name: faultName(problem), run: async () => failing(failure([problem.message], file, problem.range?.start)) }]
          : [],
      ),
      ...calls.map((entry) => ({
        name: entry.call.name,
        async run(context: TestContext) {
          const run = await traffic.during(() => runner.runAllowed(entry, context.signal)).catch(failing);
          if (run.outcome === "skipped") return context.skip(run.reasons.join(" "));
          if (run.outcome === "failed") failing(failure([...run.reasons, ...whyWithoutTool(entry, run, host)], file, entry.position));
        },
      })),
    ],
    async close() {
      await traffic.end(havePassed);
      await host.close();
    },
  };
}

function faultName({ code, range }: Diagnostic): string {
  return range === undefined ? code : `${code} in line ${range.start.line}`;
}

/** Its stack leads to the entry in the file, as that of a test to the failed line. */
function failure(reasons: readonly string[], file: string, position: Position | undefined): Error {
  // The report of Node.js prints it as it is.
  const error = new Error(visibleText(reasons.join("\n")));
  error.stack = `Error: ${error.message}\n    at ${file}:${position?.line ?? 1}:${position?.column ?? 1}`;
  return error;
}

/** What the host says of the skill, if a call has no result because its tool does not exist. */
function whyWithoutTool({ call }: SkillCall, { result }: { readonly result?: unknown }, { host }: TestHost): readonly string[] {
  if (result !== undefined) return [];
  const problems = host.diagnostics.filter(({ severity }) => severity === "error").map(formatDiagnostic);
  const names = host.skills.flatMap(({ tools }) => tools).filter((name) => name !== call.tool);
  return problems.length > 0 ? problems : [`Other tools of the skill: ${names.join(", ") || "none"}.`];
}

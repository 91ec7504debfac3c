import { describe, expect, test } from "vitest";
import { rules } from "../../skills/code-review/lint/registry.ts";
import { lintText } from "../../skills/code-review/lint/run.ts";
import { lintCases } from "./lint-cases.ts";

const findings = (rule: string, code: string, path = "file.ts"): readonly string[] => {
  const only = rules.filter((candidate) => candidate.name === rule);
  const outcome = lintText(path, code, { rules: only });
  return outcome.findings.map((finding) => finding.rule);
};

test("every rule has code that it reports and code that it leaves alone", () => {
  expect(Object.keys(lintCases).sort()).toEqual(rules.map((rule) => rule.name).sort());
  for (const { bad, good } of Object.values(lintCases)) expect(Math.min(bad.length, good.length)).toBeGreaterThan(0);
});

describe.each(rules.map((rule) => rule.name))("%s", (rule) => {
  const cases = lintCases[rule] ?? { bad: [], good: [] };
  test.each(cases.bad.map((code) => [code]))("reports %s", (code) => {
    expect(new Set(findings(rule, code, cases.path))).toEqual(new Set([rule]));
  });
  test.each(cases.good.map((code) => [code]))("leaves alone %s", (code) => {
    expect(findings(rule, code, cases.path)).toEqual([]);
  });
});

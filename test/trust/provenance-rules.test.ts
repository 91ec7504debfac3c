import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { onlyStricter } from "../../src/trust/trust-policy.ts";
import { loadTrustSettings, type TrustOptions } from "../../src/trust/trust-settings.ts";

type Rules = NonNullable<TrustOptions["provenance"]>;

/** The rule for a package when the user and a project have these rules. */
function ruleFor(name: string, ofUser: object, ofProject: Rules): unknown {
  const directory = mkdtempSync(join(tmpdir(), "trust-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, "trust.json"), JSON.stringify({ provenance: ofUser }));
  const rules = Object.fromEntries(Object.entries(ofProject).map(([key, rule]) => [key, typeof rule === "string" ? { mode: rule } : rule]));
  const { provenance } = onlyStricter({ provenance: rules });
  return loadTrustSettings({ directory, provenance }).provenanceRule(name);
}

const ours = "https://github.com/acme/skills";
const theirs = "https://github.com/evil/x";

test.each<[string, object, Rules, unknown]>([
  ["a specific rule does not weaken a general one", { "*": "require" }, { "@acme/x": "warn" }, { mode: "require" }],
  ["nor one for the scope", { "@acme/*": "require" }, { "@acme/x": "warn" }, { mode: "require" }],
  ["nor the same one", { "@acme/x": "require" }, { "@acme/x": "warn" }, { mode: "require" }],
  ["nor with off", { "*": "require" }, { "@acme/x": "off" }, { mode: "require" }],
  [
    "the repository of the user counts under the same pattern",
    { "@acme/x": { mode: "require", repository: ours } },
    { "@acme/x": { mode: "require", repository: theirs } },
    { mode: "require", repository: ours },
  ],
  [
    "and under a more general one",
    { "@acme/*": { mode: "require", repository: ours } },
    { "@acme/x": { mode: "require", repository: theirs, workflow: "ci.yml" } },
    { mode: "require", repository: ours, workflow: "ci.yml" },
  ],
  [
    "a stricter rule of a project counts",
    { "*": "warn" },
    { "@acme/x": { mode: "require", repository: ours } },
    { mode: "require", repository: ours },
  ],
  ["a general one, too", { "@acme/x": "warn" }, { "*": "require" }, { mode: "require" }],
  ["rules of other packages do not count", { "@other/x": "require" }, { "@acme/y": "require" }, undefined],
])("rules of a project can only be stricter than those of the user: %s", (_title, ofUser, ofProject, expected) => {
  expect(ruleFor("@acme/x", ofUser, ofProject)).toEqual(expected);
});

test("among the user's own rules, the most specific one counts", () => {
  expect(ruleFor("@acme/x", { "*": "require", "@acme/x": "off" }, {})).toEqual({ mode: "off" });
});

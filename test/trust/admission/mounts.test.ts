import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { compileSources } from "../../compiled-sources.ts";
import { rounds as seedOf } from "../../rounds.ts";
import { put, skillMd, tempFolder } from "../../skills/kit.ts";
import { patience } from "../../slowness.ts";
import { makeKey, resign } from "../signatures/signing-kit.ts";

const inNamespace = ["--map-root-user", "--mount", "--propagation", "private"];
const canMount = process.platform === "linux" && spawnSync("unshare", [...inNamespace, "mount", "--bind", "/tmp", "/mnt"]).status === 0;
const compiled = compileSources("test/trust/admission/mounted-child.ts");
const alice = makeKey();

/** A tool without an import of the package, which the compiled sources are not. */
function plainTool(name: string, expression: string): string {
  return `export default { name: "${name}", description: "For a test.", handler: () => ${expression} };\n`;
}

function write(folder: string, says: "good" | "evil"): void {
  const mark = says === "evil" ? "globalThis.strangers = (globalThis.strangers ?? 0) + 1;\n" : "";
  put(join(folder, "SKILL.md"), skillMd("greeter", `Be ${says}.`));
  put(join(folder, "skill.json"), '{ "name": "greeter", "version": "1.0.0" }');
  put(join(folder, "tools/a_first.ts"), `${mark}globalThis.afterCheck?.();\n${plainTool("first", '"good"')}`);
  put(join(folder, "tools/greet.ts"), `${mark}import { words } from "./_words.ts";\n${plainTool("greet", `"${says} " + words()`)}`);
  put(join(folder, "tools/_words.ts"), `${mark}export const words = () => "${says}";`);
  put(join(folder, "tools/wave.json"), '{ "name": "wave", "description": "Waves.", "handler": { "module": "_wave.ts" } }');
  put(join(folder, "tools/_wave.ts"), `${mark}export default async () => "${says} " + (await import("./_late.ts")).default;`);
  put(join(folder, "tools/_late.ts"), `${mark}export default "${says}";`);
  put(join(folder, "tools/run.json"), '{ "name": "run", "description": "Runs.", "handler": { "command": "./run.sh", "args": [] } }');
  put(join(folder, "run.sh"), `#!/bin/sh\necho ${says}\n`);
  chmodSync(join(folder, "run.sh"), 0o755);
  put(join(folder, "assets/data.txt"), `${says} data`);
}

interface Outcome {
  readonly rounds: readonly { readonly status: string | undefined; readonly texts: readonly string[] }[];
  readonly strangers: number;
}

/** Runs a host in a mount namespace of its own, where a stranger's files are mounted over a part of a signed skill at some moment. */
async function mountOver(point: string, moment: string): Promise<Outcome> {
  const base = tempFolder();
  const folder = join(base, "place/skills/greeter");
  write(folder, "good");
  await resign(folder, alice);
  cpSync(join(base, "place"), join(base, "stranger/place"), { recursive: true });
  write(join(base, "stranger/place/skills/greeter"), "evil");
  const child = [
    compiled("test/trust/admission/mounted-child.ts"),
    base,
    alice.text,
    join(base, "stranger", point),
    join(base, point),
    moment,
  ];
  const output = execFileSync("unshare", [...inNamespace, process.execPath, ...child], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(output.trim().split("\n").at(-1)!) as Outcome;
}

const points = {
  "the folder two levels above": "place",
  "the folder above": "place/skills",
  "the skill's folder": "place/skills/greeter",
  "its tools": "place/skills/greeter/tools",
  "an eager module": "place/skills/greeter/tools/greet.ts",
  "the module of a handler": "place/skills/greeter/tools/_wave.ts",
  "a module that is imported late": "place/skills/greeter/tools/_late.ts",
  "a program": "place/skills/greeter/run.sh",
  "a resource": "place/skills/greeter/assets/data.txt",
} as const;
const cases = Object.entries(points).flatMap(([what, point]) =>
  ["before", "loading", "serving"].map((moment) => ({ what, point, moment })),
);

// Each case is a process. A quarter of them meets each moment, and the folders at and above the skill.
const some = cases.filter((_, index) => index % seedOf(4, 1) === 0);

describe.skipIf(!canMount)("a stranger's files that are mounted over a part of a signed skill", () => {
  test.each(some)("are not used: $what, $moment", { timeout: patience(60_000) }, async ({ point, moment }) => {
    const { rounds, strangers } = await mountOver(point, moment);
    const [first, reloaded, unmounted] = rounds;
    expect(rounds.flatMap(({ texts }) => texts).filter((text) => text.includes("evil"))).toEqual([]);
    expect(strangers).toBe(0);
    // What was admitted before serves what was signed, or refuses; after a reload the mount is found out.
    expect(first!.texts.length === 0).toBe(moment === "before");
    expect(reloaded).toEqual({ status: "invalid", texts: [] });
    expect(unmounted).toMatchObject({
      status: "signed",
      texts: expect.arrayContaining(["greet: good good", "wave: good good", "run: good"]),
    });
  });
});

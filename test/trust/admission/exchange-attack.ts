import { chmodSync, cpSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { createTestHost, type TestHost } from "skillhost/testing";
import { expect } from "vitest";
import { poll, put, skillMd, tempFolder, toolSource } from "../../skills/kit.ts";
import { makeKey, requireOf, resign } from "../signatures/signing-kit.ts";
import { type ExchangeOptions, startExchanger } from "./exchanger.ts";

/** What is exchanged with a stranger's, from far above the skill to one of its files. */
export const exchangePoints = {
  "the folder two levels above": "place",
  "the folder above": "place/skills",
  "the skill's folder": "place/skills/greeter",
  "its tools": "place/skills/greeter/tools",
  "an eager module": "place/skills/greeter/tools/greet.ts",
  "the module of a handler": "place/skills/greeter/tools/_wave.ts",
  "a program": "place/skills/greeter/run.sh",
} as const;

export type ExchangePoint = keyof typeof exchangePoints;
export type Partner = "files" | "link";

export interface Attack extends ExchangeOptions {
  readonly point: ExchangePoint;
  /** Whether a stranger's files lie at the other name, or a link to them. */
  readonly partner: Partner;
  /** How many exchanges it takes at least. */
  readonly exchanges: number;
}

export interface AttackOutcome {
  readonly exchanges: number;
  /** How often the skill was found to be right while names were being exchanged. */
  readonly admitted: number;
  /** What of the stranger's ran, or was given out. */
  readonly successes: readonly string[];
}

const alice = makeKey();
const canRunScripts = process.platform !== "win32";

/** A signed skill and, in the same layout beside it, what a stranger would put in its place. */
async function layTrap({ point, partner }: Attack): Promise<{ readonly root: string; readonly a: string; readonly b: string }> {
  const base = tempFolder();
  const folder = join(base, "place/skills/greeter");
  write(folder, "good");
  await resign(folder, alice);
  const stranger = join(base, "stranger");
  cpSync(join(base, "place"), join(stranger, "place"), { recursive: true });
  write(join(stranger, "place/skills/greeter"), "evil");
  const path = exchangePoints[point];
  const prepared = join(stranger, path);
  if (partner === "files") return { root: join(base, "place/skills"), a: join(base, path), b: prepared };
  const link = join(base, `link-${basename(path)}`);
  symlinkSync(prepared, link, point.includes("module") || point === "a program" ? "file" : "junction");
  return { root: join(base, "place/skills"), a: join(base, path), b: link };
}

function write(folder: string, says: "good" | "evil"): void {
  const mark = says === "evil" ? "globalThis.strangers = (globalThis.strangers ?? 0) + 1;\n" : "";
  put(join(folder, "SKILL.md"), skillMd("greeter", `Be ${says}.`));
  put(join(folder, "skill.json"), '{ "name": "greeter", "version": "1.0.0" }');
  put(join(folder, "tools/greet.ts"), mark + toolSource("greet", `"${says} " + words()`, 'import { words } from "./_words.ts";'));
  put(join(folder, "tools/_words.ts"), `${mark}export const words = () => "${says}";`);
  put(join(folder, "tools/wave.json"), '{ "name": "wave", "description": "Waves.", "handler": { "module": "_wave.ts" } }');
  put(join(folder, "tools/_wave.ts"), `${mark}export default async () => "${says} " + (await import("./_late.ts")).default;`);
  put(join(folder, "tools/_late.ts"), `${mark}export default "${says}";`);
  put(join(folder, "tools/run.json"), '{ "name": "run", "description": "Runs.", "handler": { "command": "./run.sh", "args": [] } }');
  put(join(folder, "run.sh"), `#!/bin/sh\necho ${says}\n`);
  chmodSync(join(folder, "run.sh"), 0o755);
  put(join(folder, "assets/data.txt"), `${says} data`);
}

type Strangers = { strangers?: number };

/** Uses everything that a host offers of the skill, and gives what was the stranger's. */
async function useAll(kit: TestHost): Promise<readonly string[]> {
  const tools = kit.session.listTools().map(({ name }) => name);
  const wanted = ["greet", "wave", ...(canRunScripts ? ["run"] : [])].filter((name) => tools.includes(name));
  const said = await Promise.all(wanted.map(async (name) => `${name}: ${(await kit.call(name)).textResultForLlm}`));
  const resource = await kit.session.readResource("skill://greeter/assets/data.txt").catch(() => []);
  const text = await kit.session.getPrompt("greeter").catch(() => undefined);
  return [...said, JSON.stringify(resource), JSON.stringify(text ?? "")].filter((each) => each.includes("evil"));
}

function takeMarks(): readonly string[] {
  const { strangers = 0 } = globalThis as Strangers;
  delete (globalThis as Strangers).strangers;
  return strangers > 0 ? [`a stranger's module ran ${strangers} times`] : [];
}

/** Starts hosts, one after the other, while names are exchanged. */
export async function attackStarts(attack: Attack): Promise<AttackOutcome> {
  const { root, a, b } = await layTrap(attack);
  const exchanger = startExchanger(a, b, attack);
  const successes: string[] = [];
  let admitted = 0;
  while (exchanger.count < attack.exchanges || admitted === 0) {
    const kit = await createTestHost({ skillDirectories: [root], watch: false, trust: requireOf(alice) });
    if (kit.host.skills.some(({ trust }) => trust?.status === "signed")) admitted++;
    successes.push(...(await useAll(kit)));
    await kit.close();
    successes.push(...takeMarks());
  }
  return { exchanges: await exchanger.stop(), admitted, successes };
}

/** Uses a host that watches while names are exchanged. Afterwards the skill is there as it was. */
export async function attackWatcher(attack: Attack): Promise<AttackOutcome> {
  const { root, a, b } = await layTrap(attack);
  const kit = await createTestHost({ skillDirectories: [root], trust: requireOf(alice) });
  try {
    const exchanger = startExchanger(a, b, attack);
    const successes: string[] = [];
    let admitted = 0;
    while (exchanger.count < attack.exchanges) {
      if (kit.host.skills.some(({ trust }) => trust?.status === "signed")) admitted++;
      successes.push(...(await useAll(kit)));
      await new Promise(setImmediate);
    }
    const exchanges = await exchanger.stop();
    // A change that was undone before the watcher reported it may have been read halfway; from here on nothing changes it again.
    await kit.host.reload();
    await poll("the signed skill serves again", async () => {
      successes.push(...(await useAll(kit)));
      return kit.host.skills.some(({ trust }) => trust?.status === "signed");
    });
    expect((await kit.call("greet")).textResultForLlm).toBe("good good");
    return { exchanges, admitted, successes: [...successes, ...takeMarks()] };
  } finally {
    await kit.close();
  }
}

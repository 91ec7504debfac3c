import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import { emptyFolder } from "../io/temp-folder.ts";

const depth = 1_500;

function writeSkill(root: string, name: string, description: string): void {
  mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, name, "SKILL.md"), `---\nname: ${name}\ndescription: ${description}\n---\nBody.\n`);
}

function makeDeep(top: string): void {
  mkdirSync(join(top, ...Array(depth).fill("d")), { recursive: true });
}

interface Watched {
  readonly host: Host;
  readonly skills: string;
  readonly reported: string[];
}

async function watchedHost(prepare: (skills: string) => void): Promise<Watched> {
  const skills = join(emptyFolder(), "skills");
  writeSkill(skills, "good", "Works.");
  prepare(skills);
  const host = await createHost({
    skillDirectories: [skills],
    plugins: [],
    watch: true,
    logger: silentLogger,
    sessionsDirectory: emptyFolder(),
  });
  onTestFinished(() => host.close());
  const reported: string[] = [];
  host.on("diagnostic", ({ code }) => reported.push(code));
  return { host, skills, reported };
}

/** Waits until a save of the good skill is noticed. */
async function expectAlive({ host, skills }: Watched, description: string): Promise<void> {
  writeSkill(skills, "good", description);
  await expect.poll(() => host.skills.find(({ name }) => name === "good")?.description).toBe(description);
}

const codes = ({ host, reported }: Watched): readonly string[] => [...host.diagnostics.map(({ code }) => code), ...reported];

describe.each([
  ["beside skills", (skills: string) => join(skills, "deep")],
  ["in a skill", (skills: string) => join(skills, "good", "deep")],
])(`a folder of ${depth} levels %s`, (_, place) => {
  test("does not prevent the host from starting or the other skills from loading", async () => {
    const watched = await watchedHost((skills) => makeDeep(place(skills)));
    expect(watched.host.skills.map(({ name }) => name)).toEqual(["good"]);
    expect(codes(watched)).toContain("WATCH_TOO_DEEP");
    await expectAlive(watched, "Changed.");
  });

  test("is reported when it is moved there and does not affect the other skills", async () => {
    const elsewhere = join(emptyFolder(), "deep");
    makeDeep(elsewhere);
    const watched = await watchedHost(() => {});
    renameSync(elsewhere, place(watched.skills));
    await expect.poll(() => codes(watched)).toContain("WATCH_TOO_DEEP");
    await expectAlive(watched, "Changed.");
  });
});

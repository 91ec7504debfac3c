import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Change, type CommitOptions, commitChanges, openStaging } from "../../src/packages/commit.ts";
import { claimProject, settleProject } from "../../src/packages/package-project.ts";
import { skillDocument } from "../cli/run-cli.ts";
import { place, run, useProjects } from "./project-kit.ts";

useProjects();

const { signal } = new AbortController();
const packageFiles = (version: string): Record<string, string> => ({
  "package.json": JSON.stringify({ name: "greeter", version }),
  "SKILL.md": skillDocument("greeter"),
});

function install(folder: string, version: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(packageFiles(version))) writeFileSync(join(folder, name), text);
}

/** Updates a package of a project from 1.0.0 to 2.0.0. */
async function update(finish: () => Promise<void>, options: CommitOptions): Promise<void> {
  const project = place.at("project");
  const staging = await openStaging(project);
  const staged = join(staging.folder, "greeter");
  install(staged, "2.0.0");
  const change: Change = { kind: "put", path: "node_modules/greeter", staged: staged.slice(project.length + 1) };
  await commitChanges(staging, [change], finish, options);
}

function projectWithPackage(): void {
  place.write(
    "project/package.json",
    '{ "name": "project", "dependencies": { "greeter": "*" }, "skillhost": { "packages": ["greeter"] } }',
  );
  install(place.at("project/node_modules/greeter"), "1.0.0");
}

/** What is left of an update whose process was killed right after a step. */
async function killedAfter(step: string): Promise<string> {
  projectWithPackage();
  const left = place.at(`killed-after-${step}`);
  const keep = (): void => cpSync(place.at("project"), left, { recursive: true });
  await update(async () => {}, { onStep: ({ kind }) => (kind === step ? keep() : undefined) });
  return left;
}

test.each(["away", "placed", "manifests"])(
  "after an update that was killed at %s, every command finds the version from before",
  async (step) => {
    const cwd = await killedAfter(step);
    const listed = await run(["list"], { cwd });
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining("of greeter@1.0.0") });
    expect(listed.stderr).toContain("An earlier command was interrupted; its changes were undone: node_modules/greeter.");
    expect((await run(["list"], { cwd })).stderr).not.toContain("interrupted");
  },
);

test("a reader of packages that are being moved waits until the move is complete or rolled back", async () => {
  projectWithPackage();
  const claim = await claimProject({ folder: place.at("project"), scope: "project" }, { signal, onWait() {} });
  const order: string[] = [];
  let reader: Promise<unknown> | undefined;
  const read = async (): Promise<void> => {
    const { kind } = await settleProject(place.at("project"), signal);
    order.push(kind, readFileSync(place.at("project/node_modules/greeter/package.json"), "utf8"));
  };
  const fails = async (): Promise<void> => {
    order.push("the update fails");
    throw new Error("no space left");
  };
  const onStep: CommitOptions["onStep"] = ({ kind }) => {
    if (kind === "away") reader = read();
  };
  await expect(update(fails, { onStep })).rejects.toThrow("no space left");
  claim[Symbol.dispose]();
  await reader;
  expect(order).toEqual(["the update fails", "settled", packageFiles("1.0.0")["package.json"]]);
});

test("an invalid journal does not prevent the use of installed packages", async () => {
  projectWithPackage();
  place.write("project/node_modules/.skillhost-journal.json", "{");
  const listed = await run(["list"]);
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining("of greeter@1.0.0") });
  expect(listed.stderr).toContain("could not be undone");
});

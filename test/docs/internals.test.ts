import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buildPackage } from "../built-package.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(join(root, "docs/internals.md"), "utf8");
const pathsIn = (text: string): string[] => [...text.matchAll(/`((?:src|test|scripts)\/[\w./-]*)`/g)].map(([, path = ""]) => path);

/** The part of the page under a heading, up to the next heading of the same level or above. */
function section(heading: string): string {
  const start = page.indexOf(`\n${heading}\n`);
  expect(start, `docs/internals.md has the heading "${heading}"`).toBeGreaterThan(-1);
  const rest = page.slice(start + heading.length + 2);
  const level = heading.indexOf(" ");
  const end = rest.search(new RegExp(`^#{1,${level}} `, "m"));
  return end === -1 ? rest : rest.slice(0, end);
}

/** The files that each flow enters, in the order in which it first enters them. */
async function enteredFiles(): Promise<Readonly<Record<string, { readonly files: readonly string[] }>>> {
  const { folder } = buildPackage();
  const script = join(root, "scripts/measure-switches.mjs");
  const env = { ...process.env, TMPDIR: tmpdir(), TEMP: tmpdir(), TMP: tmpdir() };
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--dist", join(folder, "dist"), "--json"], { env });
  return JSON.parse(stdout);
}

let entered: ReturnType<typeof enteredFiles> | undefined;

test("every file that docs/internals.md names exists", () => {
  const missing = pathsIn(page).filter((path) => !existsSync(join(root, path)));
  expect(missing).toEqual([]);
  expect(pathsIn(page).length).toBeGreaterThan(30);
});

test.each([
  ["save", "### A save is reloaded"],
  ["call", "### A tool is called"],
  ["turn", "### A model takes a turn"],
])("a %s enters the files that docs/internals.md names, in that order", async (flow, heading) => {
  entered ??= enteredFiles();
  const { files } = (await entered)[flow]!;
  const named = pathsIn(section(heading));
  expect(named.filter((file) => !files.includes(file))).toEqual([]);
  expect(files.filter((file) => named.includes(file))).toEqual(named);
});

test("the glossary has at most 15 words", () => {
  const rows = section("## Glossary")
    .split("\n")
    .filter((line) => line.startsWith("| "));
  expect(rows.length - 1).toBeLessThanOrEqual(15);
});

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openWorkspace, type Workspace } from "./workspace-kit.ts";

/** Contents that must not be shown outside, and those that may be. */
export const secret = "OUTSIDE-SECRET";

/** A workspace whose folder `sub` another process repeatedly replaces by a link to a folder outside. */
export interface ExchangedWorkspace {
  readonly workspace: Workspace;
  readonly outside: string;
  /** Files that were created or changed outside. */
  traces(): readonly string[];
}

// Atomic if the system has renameat2: the path always exists. Otherwise by four renames.
const exchangers = {
  python: `
import ctypes, os, random, sys, time
libc = ctypes.CDLL(None, use_errno=True)
one, other = sys.argv[1].encode(), sys.argv[2].encode()
if libc.renameat2(-100, one, -100, other, 2) != 0: sys.exit(3)
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    libc.renameat2(-100, one, -100, other, 2)
    # Calls must succeed now and then: otherwise their first check is all that is tried.
    if random.random() < 0.5: time.sleep(random.random() * 0.003)
`,
  node: `
const { renameSync } = require("node:fs");
const [one, other] = process.argv.slice(1);
console.log("ready");
const parent = process.ppid;
const swap = (from, to) => { try { renameSync(from, to) } catch {} };
for (let round = 0; round % 1000 !== 0 || process.ppid === parent; round++) { swap(one, one + ".x"); swap(other, one); swap(one + ".x", other); }
`,
};

export async function openExchanged(config: object = {}): Promise<ExchangedWorkspace> {
  const outside = realpathSync(mkdtempSync(join(tmpdir(), "exchange-outside-")));
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
  const files = ["a.txt", "edited.txt", "gone.txt", "deep/b.txt"];
  for (const file of files) {
    mkdirSync(join(outside, "deep"), { recursive: true });
    writeFileSync(join(outside, file), `${secret}\n`);
  }
  const workspace = await openWorkspace(Object.fromEntries(files.map((file) => [`sub/${file}`, "inside\n"])), {}, undefined, config);
  const [one, other] = [join(workspace.folder, "sub"), join(workspace.folder, "link")];
  symlinkSync(outside, other, "junction");
  const exchanger =
    (await start("python3", ["-c", exchangers.python, one, other])) ?? (await start(process.execPath, ["-e", exchangers.node, one, other]));
  onTestFinished(() => void exchanger?.kill("SIGKILL"));
  const before = listOf(outside);
  return { workspace, outside, traces: () => listOf(outside).filter((entry) => !before.includes(entry)) };
}

function start(program: string, args: readonly string[]): Promise<ChildProcess | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
    child.on("error", () => resolve(undefined));
    child.on("exit", () => resolve(undefined));
    child.stdout.once("data", () => resolve(child));
  });
}

function listOf(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : [];
}

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createSessionStore } from "skillhost/plugins/nats";
import { expect, onTestFinished } from "vitest";
import { buildPackage } from "../../built-package.ts";
import { keepingOwner } from "../../contract/session-store-contract.ts";
import { type NatsServer, until } from "./nats-server.ts";

/** A process that owns a session and adds records to it until it is killed. */
export class OwnerProcess {
  readonly #child: ChildProcess;
  readonly ended: Promise<unknown>;
  readonly said: string[] = [];

  constructor({ address }: NatsServer, sessionId: string, nodeOptions: string = "") {
    const plugin = pathToFileURL(join(buildPackage().folder, "dist/plugins/nats/plugin.js")).href;
    const script = fileURLToPath(new URL("session-owner.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, plugin, address, sessionId], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, NODE_OPTIONS: nodeOptions },
    });
    this.#child = child;
    this.ended = new Promise((resolve) => child.once("close", resolve));
    createInterface({ input: child.stdout }).on("line", (line) => this.said.push(line));
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await this.ended;
    });
  }

  /** The number of records that are acknowledged. */
  get stored(): number {
    return Number(this.said.findLast((line) => line.startsWith("stored "))?.split(" ")[1] ?? 0);
  }

  /** The number of records with which it began. */
  get began(): number | undefined {
    const found = this.said.find((line) => line.startsWith("owns "));
    return found === undefined ? undefined : Number(found.split(" ")[1]);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

/** The option of Node with which the clock of a process is wrong by so many minutes. */
export function shiftedClock(minutes: number): string {
  const shift = minutes * 60_000;
  const code = `const Real = Date; globalThis.Date = class extends Real { constructor(...given) { if (given.length === 0) super(Real.now() + ${shift}); else super(...given); } static now() { return Real.now() + ${shift}; } };`;
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

export async function recordsOf({ address }: NatsServer, sessionId: string): Promise<readonly unknown[]> {
  const store = createSessionStore({ servers: address, lease: 500 });
  store.attach(keepingOwner());
  onTestFinished(() => store[Symbol.asyncDispose]());
  return (await store.read(sessionId)).records.map(({ n }) => n);
}

const lanes = 4;
const ownersOfSession = 10;

/** Kills so many owners while they write, each of which takes the session of the one before. What was acknowledged is there once. */
export async function killOwners(server: NatsServer, kills: number): Promise<void> {
  const moves: number[] = [];
  let total = 0;
  const killIn = async (sessionId: string, some: readonly number[]): Promise<void> => {
    let acknowledged = 0;
    for (const kill of some) {
      const began = performance.now();
      const owner = new OwnerProcess(server, sessionId);
      await until(() => owner.began !== undefined, "the next owner");
      moves.push(performance.now() - began);
      expect(owner.began).toBeGreaterThanOrEqual(acknowledged);
      // At different moments: while records are sent, stored and acknowledged.
      await until(() => owner.stored > (owner.began ?? 0) + 20 + ((kill * 37) % 200), "its records");
      owner.signal("SIGKILL");
      await owner.ended;
      acknowledged = owner.stored;
    }
    const records = await recordsOf(server, sessionId);
    expect(records.length).toBeGreaterThanOrEqual(acknowledged);
    expect(records).toEqual(Array.from(records, (_, n) => n));
    total += acknowledged;
  };
  const run = async (lane: number): Promise<void> => {
    const own = Array.from({ length: kills }, (_, kill) => kill).filter((kill) => kill % lanes === lane);
    for (let at = 0; at < own.length; at += ownersOfSession) await killIn(`lane-${lane}-${at}`, own.slice(at, at + ownersOfSession));
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => run(lane)));
  const longest = Math.round(Math.max(...moves));
  process.stderr.write(
    `${kills} kills, ${total} acknowledged records; the next owner after ${longest} ms at most, start of its process included.\n`,
  );
}

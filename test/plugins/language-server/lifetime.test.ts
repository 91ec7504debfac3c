import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestHost, type TestHost } from "skillhost/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LanguageServer } from "../../../plugins/language-server/language-server.ts";
import { silentLogger } from "../../../src/base/logger.ts";
import { spawnProcess } from "../../../src/io/process/child-process.ts";
import { closesWhileOpening } from "../../contract/closes-while-opening.ts";
import { doubleProgram } from "../../doubles/language-server/double-program.ts";
import { isAlive } from "../../host/servers-kit.ts";

let host: TestHost;
let home: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skillhost-language-server-"));
  host = await createTestHost();
});

afterAll(async () => {
  await host.close();
  rmSync(home, { recursive: true, force: true });
});

interface Started {
  readonly server: LanguageServer;
  /** Process ids of all programs that were started for it. */
  readonly pids: number[];
}

function create(faults: object = {}): Started {
  const pids: number[] = [];
  const startProcess: typeof spawnProcess = async (spec) => {
    const spawned = await spawnProcess(spec);
    if (spawned.kind === "spawned") pids.push(spawned.process.pid);
    return spawned;
  };
  const environment = { PATH: process.env["PATH"] ?? "", HOME: home, DOUBLE_FAULTS: JSON.stringify(faults) };
  const api = { log: silentLogger, startProcess } as never;
  const options = { server: doubleProgram, environment, startTimeout: 20_000 };
  return { server: new LanguageServer({ api, session: host.session, options, onClosed() {} }), pids };
}

closesWhileOpening("a language server", () => {
  const { server, pids } = create();
  return { open: () => server.start(), close: () => server.close(), countOpen: () => pids.filter(isAlive).length };
});

test("closing ends a server that never answers, without waiting for it", async () => {
  const { server, pids } = create({ isMute: true });
  const starting = expect(server.start()).rejects.toThrow();
  await expect.poll(() => pids.length).toBe(1);
  await server.close();
  await starting;
  expect(pids.filter(isAlive)).toEqual([]);
});

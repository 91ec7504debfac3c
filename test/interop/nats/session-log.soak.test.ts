import { describe, expect, test } from "vitest";
import { generated } from "../../rounds.ts";
import { startServer } from "./fleet-kit.ts";
import { findNatsServer } from "./nats-server.ts";
import { runSessionModel } from "./session-log-model.ts";
import { killOwners } from "./session-owners.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server (sessions for a long time)", () => {
  test("of owners that are killed while they write, no acknowledged record is lost and none is doubled", async () => {
    await killOwners(await startServer(), generated(8, 200));
  });

  test("while networks, hosts and the server fail at random, each session stays what its owners added, in order", async () => {
    const server = await startServer();
    let moved = 0;
    for (let run = 0; run < generated(1, 10); run++) {
      const { moves } = await runSessionModel(server, { run, sessions: 8, steps: 10, faults: 10 });
      moved += moves;
    }
    expect(moved).toBeGreaterThan(0);
  });
});

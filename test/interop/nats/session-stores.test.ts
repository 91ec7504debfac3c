import { createSessionStore } from "skillhost/plugins/nats";
import { describe, onTestFinished } from "vitest";
import { promisesOfStores } from "../../contract/session-store-contract.ts";
import { startServer } from "./fleet-kit.ts";
import { findNatsServer } from "./nats-server.ts";

const { path } = findNatsServer();

describe.skipIf(path === "")("a real nats-server (sessions in a stream)", () => {
  promisesOfStores(async (count) => {
    const { address } = await startServer();
    const stores = Array.from({ length: count }, () => createSessionStore({ servers: address, lease: 1_000 }));
    for (const store of stores) onTestFinished(() => store[Symbol.asyncDispose]());
    return stores;
  });
});

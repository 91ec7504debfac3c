import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { Runtime, type Sdk } from "./sdk-kit.ts";

let runtime: Runtime;

beforeAll(async () => {
  runtime = await Runtime.start();
}, patience(120_000));

afterAll(() => runtime[Symbol.asyncDispose]());

/** Every method that the SDK can send, as its own code has them. */
function methodsOfTheSdk(): readonly string[] {
  const files = ["generated/rpc.js", "client.js", "session.js"];
  const texts = files.map((file) =>
    readFileSync(fileURLToPath(new URL(`node_modules/@github/copilot-sdk/dist/${file}`, import.meta.url)), "utf8"),
  );
  const found = texts.flatMap((text) => [...text.matchAll(/sendRequest\(\s*"([\w.]+)"/g)].map(([, method]) => method!));
  return [...new Set(found)].sort();
}

/** They end something that the others need: each comes after all that do not. */
const ending =
  /^(session\.(destroy|detach|shutdown|delete|suspend)|sessions\.(close|delete|bulkDelete|pruneOld|releaseLock)|llmInference\.|sessionFs\.)/;

test("every method that the SDK can send is answered, supported or not, and never as one that nobody knows", async () => {
  const client = runtime.spawning();
  const session = await runtime.session({}, client);
  const { sessionId } = session;
  const methods = methodsOfTheSdk();
  expect(methods.length).toBeGreaterThan(339);
  const [last, first] = [methods.filter((method) => ending.test(method)), methods.filter((method) => !ending.test(method))];
  const refused: string[] = [];
  const told: Record<string, string> = {};
  for (const method of [...first.filter((method) => method !== "runtime.shutdown"), ...last, "runtime.shutdown"]) {
    try {
      await client.connection.sendRequest(method, { sessionId, requestId: "none", name: "none", names: [] });
    } catch (error) {
      const { code, message } = error as { readonly code: unknown; readonly message: string };
      expect([method, typeof code]).toEqual([method, "number"]);
      told[method] = message;
      if (code === -32601) refused.push(method);
    }
  }
  await client.forceStop();
  expect(Object.entries(told).filter(([, message]) => /unhandled method|no method/i.test(message))).toEqual([]);
  for (const method of refused) expect(told[method]).toMatch(/is not supported by skillhost: .{10,}|not supported by skillhost/);
  // What clients of everyday use cannot do without.
  const everyday: readonly string[] = [
    "connect",
    "ping",
    "session.create",
    "session.send",
    "session.tools.handlePendingToolCall",
    "models.list",
  ];
  expect(refused.filter((method) => everyday.includes(method))).toEqual([]);
  const answered: Sdk = methods.filter((method) => !refused.includes(method));
  expect(answered.length).toBeGreaterThan(170);
});

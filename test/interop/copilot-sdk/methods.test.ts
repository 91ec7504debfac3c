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

/** Every method that the SDK can send, extracted from its code. */
function methodsOfTheSdk(): readonly string[] {
  const files = ["generated/rpc.js", "client.js", "session.js"];
  const texts = files.map((file) =>
    readFileSync(fileURLToPath(new URL(`node_modules/@github/copilot-sdk/dist/${file}`, import.meta.url)), "utf8"),
  );
  const found = texts.flatMap((text) => [...text.matchAll(/sendRequest\(\s*"([\w.]+)"/g)].map(([, method]) => method!));
  return [...new Set(found)].sort();
}

/** Methods that end something that others need are called last. */
const ending =
  /^(session\.(destroy|detach|shutdown|delete|suspend)|sessions\.(close|delete|bulkDelete|pruneOld|releaseLock)|llmInference\.|sessionFs\.)/;

test("every method that the SDK can send is answered or refused by name, and none is unknown", async () => {
  const client = runtime.spawning();
  const session = await runtime.session({}, client);
  const { sessionId } = session;
  const methods = methodsOfTheSdk();
  expect(methods.length).toBeGreaterThan(339);
  const [last, first] = [methods.filter((method) => ending.test(method)), methods.filter((method) => !ending.test(method))];
  const refused: string[] = [];
  const messages: Record<string, string> = {};
  for (const method of [...first.filter((method) => method !== "runtime.shutdown"), ...last, "runtime.shutdown"]) {
    try {
      await client.connection.sendRequest(method, { sessionId, requestId: "none", name: "none", names: [] });
    } catch (error) {
      const { code, message } = error as { readonly code: unknown; readonly message: string };
      expect([method, typeof code]).toEqual([method, "number"]);
      messages[method] = message;
      if (code === -32601) refused.push(method);
    }
  }
  await client.forceStop();
  expect(Object.entries(messages).filter(([, message]) => /unhandled method|no method/i.test(message))).toEqual([]);
  for (const method of refused) expect(messages[method]).toMatch(/is not supported by skillhost: .{10,}|not supported by skillhost/);
  // Common clients depend on these methods.
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

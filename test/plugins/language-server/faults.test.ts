import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { defineTool } from "skillhost";
import { createTestHost } from "skillhost/testing";
import { describe, expect, test } from "vitest";
import { ClientToolCalls } from "../../../plugins/language-server/client-tool-calls.ts";
import { silentLogger } from "../../../src/base/logger.ts";
import { Bridge } from "../../doubles/language-server/bridge.ts";
import { doubleProgram } from "../../doubles/language-server/double-program.ts";
import { confirmationResult, faultOf, toolResult } from "../../doubles/language-server/wire-schemas.ts";

const nothing = { type: "object", properties: {} } as const;
const greet = defineTool("greet", { description: "d", parameters: nothing, handler: () => "grüß 🙂" });

describe("a faulty language server", () => {
  test("works although it writes byte by byte, sends unknown requests and floods with reports", async () => {
    const faults = { chunk: 1, asksNonsense: true, flood: 2_000 };
    await using bridge = await Bridge.start(doubleProgram, { tools: [greet], faults });
    const { outcome, text, calls } = await bridge.turn([["greet"]]);
    expect({ outcome, results: bridge.results, calls: calls.length }).toEqual({ outcome: "completed", results: ["grüß 🙂"], calls: 1 });
    expect(text).toBe(`${".".repeat(2_000)}\n\nDone.`);
  });

  test("that dies during a tool call is started again", async () => {
    await using bridge = await Bridge.start(doubleProgram, { tools: [greet], faults: { diesOnCall: true } });
    await expect(bridge.turn([["greet"]])).rejects.toMatchObject({
      code: "LANGUAGE_SERVER_EXITED",
      message: expect.stringContaining("SIGKILL"),
    });
    expect(bridge.agent.state).toBe("stopped");
    await expect(bridge.agent.checkStatus()).resolves.toMatchObject({ status: "OK" });
  });

  test("that never answers times out", async () => {
    const starting = Bridge.start(doubleProgram, { faults: { isMute: true }, options: { startTimeout: 600 } });
    await expect(starting).rejects.toMatchObject({ code: "LANGUAGE_SERVER_TIMEOUT", message: expect.stringContaining("initialize") });
  });

  test("that is another program fails to start", async () => {
    const starting = Bridge.start("/bin/false");
    await expect(starting).rejects.toMatchObject({ code: "LANGUAGE_SERVER_EXITED", message: expect.stringContaining("code 1") });
  });

  test("that rejects a tool still receives the others", async () => {
    const others = ["first", "last"].map((name) => defineTool(name, { description: "d", handler: () => name }));
    await using bridge = await Bridge.start(doubleProgram, { tools: [others[0]!, greet, others[1]!], faults: { refuses: ["greet"] } });
    const ours = bridge.agent.tools.filter(({ id }) => id.startsWith("copilot-editor.")).map(({ name }) => name);
    expect(ours.sort()).toEqual(["first", "last"]);
    const errors = bridge.agent.diagnostics.filter(({ severity }) => severity === "error");
    expect(errors).toMatchObject([{ code: "LANGUAGE_SERVER_TOOL_REFUSED", source: "greet" }]);
  });

  test("that ignores its shutdown is killed", async () => {
    await using bridge = await Bridge.start(doubleProgram, { faults: { lingers: true } });
    const { pid } = bridge.agent;
    await bridge.agent.close();
    expect(() => process.kill(pid!, 0)).toThrow(/ESRCH/);
  });
});

test.for([429, 500])("a turn whose model answered with %i fails with that code", async (status) => {
  await using bridge = await Bridge.start(doubleProgram);
  bridge.backend.answer({ status });
  expect(await bridge.agent.send("Hello?")).toMatchObject({ outcome: "failed", error: { code: status } });
});

test("a session of a host without the plugin cannot be connected", async () => {
  const { languageServer } = await import("skillhost/plugins/language-server");
  await using host = await createTestHost();
  await expect(languageServer.connect(host.session)).rejects.toMatchObject({ code: "PLUGIN_INACTIVE" });
});

/** Values that handlers return or throw. */
const anything = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withNullPrototype: true,
    }),
  },
  fc.record({ textResultForLlm: fc.anything(), resultType: fc.anything(), binaryResultsForLlm: fc.anything() }, { requiredKeys: [] }),
  fc.record({ content: fc.array(fc.anything()), isError: fc.anything(), structuredContent: fc.anything() }, { requiredKeys: [] }),
  fc.record({ result: fc.constantFrom("success", "error", 1), message: fc.anything() }),
  // Created on use, since the generator would inspect them.
  fc.constantFrom(...["function", "symbol", "proxy", "bare", "cyclic", "error", "proto"]).map((kind) => new Lazy(kind)),
);

class Lazy {
  readonly kind: string;

  constructor(kind: string) {
    this.kind = kind;
  }

  make(): unknown {
    const made: Record<string, () => unknown> = {
      function: () => () => {},
      symbol: () => Symbol("s"),
      proxy: () => new Proxy({}, throwing()),
      bare: () => Object.create(null),
      cyclic,
      error: () => new Error("e"),
      proto: () => JSON.parse('{"__proto__":{"a":1}}'),
    };
    return made[this.kind]!();
  }
}

test("the server gets a valid answer whatever a handler returns or throws", async () => {
  let behave: () => unknown = () => "";
  const tool = defineTool("any", { description: "d", parameters: nothing, skipPermission: true, handler: () => behave() });
  await using host = await createTestHost({ session: { tools: [tool] } });
  const calls = new ClientToolCalls({
    session: host.session,
    outputLimit: 200,
    log: silentLogger,
    permit: async () => false,
    onTurnOver: () => {},
  });
  const { signal } = new AbortController();
  let id = 0;
  await fc.assert(
    fc.asyncProperty(anything, fc.constantFrom("return", "throw", "reject", "resolve"), async (given, how) => {
      const value = given instanceof Lazy ? given.make() : given;
      behave = () => {
        if (how === "throw") throw value;
        if (how === "reject") return Promise.reject(value);
        return how === "resolve" ? Promise.resolve(value) : value;
      };
      const params = { name: "any", input: {}, conversationId: "c", turnId: "t", roundId: 1, toolCallId: `call-${id++}` };
      // As it arrives after JSON.
      const reply = JSON.parse(JSON.stringify(await calls.invoke(params, signal)));
      expect(reply).toHaveLength(2);
      expect(reply[1]).toBeNull();
      expect(faultOf(toolResult, reply[0])).toBeUndefined();
      expect(reply[0].content.every((part: { value: unknown }) => typeof part.value === "string" && part.value.length <= 200)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

test("the server gets a valid answer whatever it sends", async () => {
  await using host = await createTestHost({ session: { tools: [greet] } });
  const calls = new ClientToolCalls({
    session: host.session,
    outputLimit: 200,
    log: silentLogger,
    permit: () => Promise.reject(new Error("no")),
    onTurnOver: () => {},
  });
  const { signal } = new AbortController();
  const fields = {
    name: fc.constantFrom("greet", "copilot.read_file", "__proto__", 1, null),
    input: fc.anything(),
    toolCallId: fc.anything(),
    conversationId: fc.anything(),
  };
  const requests = fc.oneof(fc.anything(), fc.record(fields, { requiredKeys: [] }));
  await fc.assert(
    fc.asyncProperty(requests, async (params) => {
      const [invoked, confirmed] = [await calls.invoke(params, signal), await calls.confirm(params, signal)];
      expect([faultOf(toolResult, invoked[0]), faultOf(confirmationResult, confirmed[0])]).toEqual([undefined, undefined]);
      expect([invoked.length, confirmed.length, invoked[1], confirmed[1]]).toEqual([2, 2, null, null]);
    }),
    { numRuns: 100 },
  );
  calls.close();
  expect(await calls.confirm({ name: "greet" }, signal)).toEqual([{ result: "dismiss" }, null]);
});

test("the plugin imports only the public API", () => {
  const folder = fileURLToPath(new URL("../../../plugins/language-server/", import.meta.url));
  const imported = readdirSync(folder).flatMap((file) => {
    return Array.from(readFileSync(`${folder}${file}`, "utf8").matchAll(/from "([^"]+)"/g), ([, from]) => from!);
  });
  const others = imported.filter((from) => !from.startsWith("./") && !from.startsWith("node:"));
  expect([...new Set(others)].sort()).toEqual(["skillhost", "vscode-jsonrpc/node.js"]);
});

function throwing(): ProxyHandler<object> {
  const fail = (): never => {
    throw new Error("hostile");
  };
  return { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail };
}

function cyclic(): object {
  const value: { self?: object } = {};
  value.self = value;
  return value;
}

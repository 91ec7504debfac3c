import { PassThrough } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import { packageVersion } from "../../../src/base/package-root.ts";
import { families, loadMethod } from "../../../src/servers/copilot/methods/dispatch.ts";
import { handshake } from "../../../src/servers/copilot/methods/handshake.ts";
import { answeredMethods, refusedMethods, Served } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

describe("the handshake", () => {
  test("connect answers with version 3, and so does a later ping", async () => {
    served = await Served.start();
    const client = served.open();
    expect(await client.request("connect", { supportedTaskKinds: ["agent"] })).toEqual({
      ok: true,
      protocolVersion: 3,
      version: packageVersion,
    });
    const pong = await client.request("ping", { message: "hello" });
    expect(pong).toMatchObject({ message: "pong: hello", protocolVersion: 3 });
    expect(Number.isNaN(Date.parse(pong.timestamp))).toBe(false);
    expect(await client.request("status.get")).toEqual({ version: packageVersion, protocolVersion: 3 });
  });

  test("a client that only pings is one of protocol 2", async () => {
    served = await Served.start();
    expect(await served.open().request("ping")).toMatchObject({ message: "pong", protocolVersion: 2 });
  });

  test("a client of another version is refused by a text that names both versions", async () => {
    served = await Served.start();
    const { message } = await served.open().refusal("connect", { protocolVersion: 7 });
    expect(message).toContain("version 7");
    expect(message).toContain("versions 2 and 3");
  });

  test("without its token a connection gets nothing", async () => {
    served = await Served.start({ server: { token: "let-me-in" } });
    const client = served.open();
    for (const [method, params] of [
      ["connect", {}],
      ["connect", { token: "wrong" }],
      ["connect", { token: "let-me-in-" }],
      ["ping", {}],
    ] as const) {
      expect((await client.refusal(method, params)).message).toContain("AUTHENTICATION_FAILED");
    }
    expect(await client.request("connect", { token: "let-me-in" })).toMatchObject({ ok: true });
    expect(await client.request("ping")).toMatchObject({ protocolVersion: 3 });
  });

  test("a ping does not open the host", async () => {
    let opened = 0;
    served = await Served.start({
      server: {
        openHost: () => {
          opened++;
          return Promise.reject(new Error("not today"));
        },
      },
    });
    const client = await served.connect();
    await client.request("ping");
    await client.request("status.get");
    await client.request("auth.getStatus");
    expect(opened).toBe(0);
    expect((await client.refusal("session.create", {})).message).toBe("Request session.create failed with message: not today");
    expect((await client.refusal("session.create", {})).message).toContain("not today");
    expect(opened).toBe(2);
  });

  test("runtime.shutdown is answered before the server ends", async () => {
    served = await Served.start();
    const client = await served.connect();
    expect(await client.request("runtime.shutdown")).toBe(null);
    await served.server.shutdown;
  });
});

describe("the methods of the protocol", () => {
  test("the beginning of a method's name leads to the file that answers it", async () => {
    for (const [, load] of families) {
      for (const [name, method] of Object.entries(await load())) expect([name, await loadMethod(name)]).toEqual([name, method]);
    }
    for (const name of ["session.", "session.nothing", "session.mcp.apps.", "session.sendNothing", "nothing", ""]) {
      expect([name, await loadMethod(name)]).toEqual([name, undefined]);
    }
  });

  test("each method is answered or refused, and only once", async () => {
    const all = [...Object.keys(handshake), ...(await answeredMethods()), ...refusedMethods];
    expect(all.filter((method, index) => all.indexOf(method) !== index)).toEqual([]);
    expect((await answeredMethods()).length).toBeGreaterThan(190);
  });

  test("what is not supported says so and why, and never that a method is unhandled", async () => {
    served = await Served.start();
    const client = await served.connect();
    // Most programs never call one of them.
    expect(refusedMethods.length).toBeLessThanOrEqual(25);
    for (const method of refusedMethods) {
      const { code, message } = await client.refusal(method, { sessionId: "x" });
      expect(code).toBe(-32601);
      expect(message).toMatch(new RegExp(`^${method.replaceAll(".", "\\.")} is not supported by skillhost: .{10,}`));
    }
    expect((await client.refusal("nothing.of.this.name")).message.toLowerCase()).not.toContain("unhandled");
  });

  test("every supported method of a session refuses a session that is not there by naming it", async () => {
    served = await Served.start();
    const client = await served.connect();
    const free = new Set(["session.create", "session.list", "session.getLastId", "session.getForeground", "session.setForeground"]);
    const lenient = new Set([
      "session.destroy",
      "session.detach",
      "session.delete",
      "session.getMetadata",
      "session.permissions.locations.apply",
    ]);
    const all = (await answeredMethods()).filter((method) => method.startsWith("session."));
    const rest = all.filter((method) => !free.has(method) && !lenient.has(method) && !/locations|folderTrust/.test(method));
    expect(rest.length).toBeGreaterThan(80);
    for (const method of rest) {
      const { message } = await client.refusal(method, {
        sessionId: "zz",
        requestId: "r",
        name: "n",
        prompt: "p",
        result: {},
        response: {},
        message: "m",
        mode: "plan",
        path: "p",
        content: "c",
        serverName: "s",
        uri: "u",
        modelId: "m",
        eventType: "e",
        handle: "h",
        command: "c",
        commandName: "c",
        toolName: "t",
        id: "i",
        error: "e",
        config: {},
      });
      expect([method, message]).toEqual([
        method,
        expect.stringMatching(/Session not found(?: for sessionId)?: zz|There is no session|"zz"/),
      ]);
    }
  });
});

describe("bad input", () => {
  /** Sends bytes and gives what comes back until the line is closed or answers came. */
  async function raw(text: string | Buffer, until: (answer: string) => boolean): Promise<string> {
    const toServer = new PassThrough();
    let answer = "";
    return new Promise((resolve) => {
      const look = (): void => {
        if (until(answer)) resolve(answer);
      };
      const { wire } = served.server.acceptParent({
        input: toServer,
        output: {
          write: (piece) => {
            answer += piece;
            look();
          },
          pendingBytes: 0,
        },
      });
      void wire.closed.then(() => resolve(`${answer}[closed]`));
      toServer.write(text);
    });
  }

  const frame = (body: string): string => `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

  test("ids of 0 and texts are answered as they are", async () => {
    served = await Served.start();
    const answer = await raw(
      frame('{"jsonrpc":"2.0","id":0,"method":"ping"}') + frame('{"jsonrpc":"2.0","id":"ä","method":"ping","params":[{"message":"x"}]}'),
      (text) => text.includes('"id":0') && text.includes('"id":"ä"'),
    );
    expect(answer).toContain("pong: x");
  });

  test("an invalid message is refused, and the next one is answered", async () => {
    served = await Served.start();
    const junk = [
      "{nope",
      "[1,2]",
      "7",
      '{"id":3}',
      '{"id":{},"method":"ping"}',
      '{"method":7,"id":4}',
      '{"method":"$/cancelRequest"}',
      '{"id":5,"method":"ping","params":"x"}',
    ];
    const answer = await raw(junk.map(frame).join("") + frame('{"jsonrpc":"2.0","id":99,"method":"ping"}'), (text) =>
      text.includes('"id":99'),
    );
    expect(answer.match(/-32600/g)?.length).toBe(7);
    expect(answer.match(/-32700/g)?.length).toBe(1);
    expect(answer).toContain('"id":5,"error"');
  });

  test("a gigabyte that is announced closes the line with a reason", async () => {
    served = await Served.start();
    const answer = await raw("Content-Length: 1073741824\r\n\r\n", () => false);
    expect(answer).toContain("the limit is 67108864");
    expect(answer).toMatch(/\[closed\]$/);
  });

  test("requests for methods of odd names find none", async () => {
    served = await Served.start();
    const client = await served.connect();
    for (const method of ["__proto__", "constructor", "toString", "", "x".repeat(10_000)]) {
      const { code, message } = await client.refusal(method);
      expect([code, message.length < 300]).toEqual([-32601, true]);
    }
  });
});

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { buildPackage } from "../../built-package.ts";

let bin: string;
let folder: string;
let child: ChildProcess | undefined;

beforeAll(() => {
  ({ bin } = buildPackage());
  folder = mkdtempSync(join(tmpdir(), "skillhost-headless-"));
});

afterEach(async () => {
  if (child?.exitCode === null && child.signalCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface Started extends ChildProcess {
  readonly stdoutText: () => string;
  /** Its code and signal, once it has ended and all of its output is there. */
  readonly ended: Promise<readonly unknown[]>;
}

function start(args: readonly string[], env: object = {}): Started {
  const environment = { ...process.env, COPILOT_HOME: join(folder, "home"), SKILLHOST_TRUST: folder, ...env };
  const started = spawn(process.execPath, [bin, "--headless", "--no-auto-update", ...args], {
    cwd: folder,
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
  });
  child = started;
  let text = "";
  started.stdout.on("data", (piece: Buffer) => {
    text += piece.toString();
  });
  return Object.assign(started, { stdoutText: () => text, ended: once(started, "close") });
}

/** All of a text as messages of JSON-RPC; throws where it is anything else. */
function framesOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  const messages: Readonly<Record<string, unknown>>[] = [];
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    const head = /^Content-Length: (\d+)\r\n\r\n/.exec(rest.subarray(0, 40).toString());
    if (head === null) throw new Error(`Not a frame: ${rest.subarray(0, 200).toString()}`);
    const end = head[0].length + Number(head[1]);
    const message = JSON.parse(rest.subarray(head[0].length, end).toString());
    expect(message.jsonrpc).toBe("2.0");
    messages.push(message);
    rest = rest.subarray(end);
  }
  return messages;
}

describe("the process", () => {
  test("ends with 2 and names a flag that it does not know", async () => {
    const started = start(["--stdio", "--nonexistent-flag-for-testing"]);
    let stderr = "";
    started.stderr!.on("data", (piece: Buffer) => {
      stderr += piece.toString();
    });
    const [code] = await started.ended;
    expect([code, started.stdoutText()]).toEqual([2, ""]);
    expect(stderr).toContain("--nonexistent-flag-for-testing");
  });

  test("an inspector shows the sessions of its clients", async () => {
    const started = start(["--stdio", "--inspect"]);
    let stderr = "";
    started.stderr!.on("data", (piece: Buffer) => {
      stderr += piece.toString();
    });
    const connection = createMessageConnection(new StreamMessageReader(started.stdout!), new StreamMessageWriter(started.stdin!));
    connection.listen();
    await connection.sendRequest("connect", {});
    const { sessionId } = await connection.sendRequest<{ readonly sessionId: string }>("session.create", { sessionId: "shown" });
    const [, port, token] = /Inspector: http:\/\/127\.0\.0\.1:(\d+)\/#token=(\S+)/.exec(stderr)!;
    const answer = await fetch(`http://127.0.0.1:${port}/feed?poll=1`, { headers: { Authorization: `Bearer ${token}` } });
    const { messages } = (await answer.json()) as { readonly messages: readonly [{ readonly sessions: readonly unknown[] }] };
    expect(messages[0].sessions).toContainEqual(expect.objectContaining({ id: sessionId, client: "copilot" }));
    started.stdin!.end();
    expect((await started.ended)[0]).toBe(0);
    connection.dispose();
  });

  test("ends with 0 when its input ends", async () => {
    const started = start(["--stdio"]);
    const connection = createMessageConnection(new StreamMessageReader(started.stdout!), new StreamMessageWriter(started.stdin!));
    connection.listen();
    expect(await connection.sendRequest("connect", {})).toMatchObject({ ok: true });
    started.stdin!.end();
    const [code] = await started.ended;
    expect(code).toBe(0);
    connection.dispose();
  });

  test("says nothing on stdout but the protocol, whatever skills print", async () => {
    const { mkdirSync, writeFileSync } = await import("node:fs");
    const tools = join(folder, "skills/loud/tools");
    mkdirSync(tools, { recursive: true });
    writeFileSync(join(folder, "skills/loud/SKILL.md"), "---\nname: loud\ndescription: Prints.\n---\nPrint.\n");
    const code = [
      'console.log("LOADED");',
      'export const SCHEMA = { name: "shout", description: "Prints.", parameters: { type: "object", properties: {} } };',
      'export const execute = () => { console.log("CALLED"); process.stdout.write("WRITTEN"); return "done"; };',
    ];
    writeFileSync(join(tools, "shout.mjs"), code.join("\n"));
    const started = start(["--stdio", "--yolo"]);
    const connection = createMessageConnection(new StreamMessageReader(started.stdout!), new StreamMessageWriter(started.stdin!));
    connection.listen();
    await connection.sendRequest("connect", {});
    const { sessionId } = await connection.sendRequest<{ sessionId: string }>("session.create", {});
    await connection.sendRequest("session.tools.initializeAndValidate", { sessionId });
    const result = await connection.sendRequest("session.tools.execute", { sessionId, toolName: "shout" });
    expect(result).toMatchObject({ textResultForLlm: "done" });
    expect(await connection.sendRequest("runtime.shutdown", {})).toBe(null);
    const [code0] = await started.ended;
    expect(code0).toBe(0);
    expect(framesOf(started.stdoutText()).length).toBeGreaterThan(3);
    expect(started.stdoutText()).not.toMatch(/LOADED|CALLED|WRITTEN/);
    connection.dispose();
  });

  test("the process reads frames in any pieces, refuses invalid ones, and ends when it cannot separate them", async () => {
    const started = start(["--stdio"]);
    const frame = (body: string): Buffer => Buffer.from(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    const request = (id: number | string, method: string, params: object = {}): Buffer =>
      frame(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    for (const byte of request(0, "connect")) {
      started.stdin!.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    started.stdin!.write(
      Buffer.concat([request("ä", "ping", { message: "Grüße" }), frame("{nope"), frame("[7]"), request(2, "no.such.method")]),
    );
    const badText = Buffer.concat([Buffer.from("Content-Length: 4\r\n\r\n"), Buffer.from([0x22, 0xff, 0xfe, 0x22])]);
    started.stdin!.write(Buffer.concat([badText, request(3, "status.get")]));
    // Answers come in the order in which they are ready.
    for (const id of [2, 3]) await expect.poll(started.stdoutText, { interval: 10 }).toContain(`"id":${id}`);
    started.stdin!.write("Content-Length: 1073741824\r\n\r\n");
    const [code] = await started.ended;
    expect(code).toBe(0);
    const answers = framesOf(started.stdoutText());
    const byId = (id: unknown): object | undefined => answers.find((answer) => answer["id"] === id);
    expect(byId(0)).toMatchObject({ result: { ok: true } });
    expect(byId("ä")).toMatchObject({ result: { message: "pong: Grüße" } });
    expect(byId(2)).toMatchObject({ error: { code: -32601 } });
    expect(byId(3)).toMatchObject({ result: { protocolVersion: 3 } });
    const refusals = answers.filter(({ id }) => id === null).map(({ error }) => error as { code: number; message: string });
    expect(refusals.map(({ code: refusal }) => refusal)).toEqual([-32700, -32600, -32700, -32700]);
    expect(refusals.at(-1)?.message).toContain("the limit is");
  });

  test("the process prints its port, accepts only clients with the token, and ends on SIGTERM", async () => {
    const started = start([], { COPILOT_CONNECTION_TOKEN: "secret" });
    await expect.poll(() => started.stdoutText()).toMatch(/listening on port \d+/i);
    const port = Number(/port (\d+)/.exec(started.stdoutText())?.[1]);
    const socket = connect(port, "127.0.0.1");
    const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
    connection.listen();
    await expect(connection.sendRequest("ping", {})).rejects.toThrow("AUTHENTICATION_FAILED");
    expect(await connection.sendRequest("connect", { token: "secret" })).toMatchObject({ protocolVersion: 3 });
    started.kill("SIGTERM");
    const [code] = await started.ended;
    expect(code).toBe(0);
    connection.dispose();
  });

  test("answers runtime.shutdown over TCP when its sessions have ended, and then ends", async () => {
    const started = start([], { COPILOT_CONNECTION_TOKEN: "secret" });
    await expect.poll(() => started.stdoutText()).toMatch(/listening on port \d+/i);
    const socket = connect(Number(/port (\d+)/.exec(started.stdoutText())?.[1]), "127.0.0.1");
    const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
    const types: string[] = [];
    connection.onNotification("session.event", ({ event }: { event: { type: string } }) => types.push(event.type));
    connection.listen();
    await connection.sendRequest("connect", { token: "secret" });
    await connection.sendRequest("session.create", {});
    expect(await connection.sendRequest("runtime.shutdown", {})).toBe(null);
    expect(types).toContain("session.shutdown");
    const [code] = await started.ended;
    expect(code).toBe(0);
    connection.dispose();
  });

  test("makes up a token where none is set, and says it on stderr before the port on stdout", async () => {
    const started = start([], { COPILOT_CONNECTION_TOKEN: "" });
    let stderr = "";
    started.stderr!.on("data", (piece: Buffer) => {
      stderr += piece.toString();
    });
    await expect.poll(() => started.stdoutText()).toMatch(/listening on port \d+/i);
    await expect.poll(() => stderr).toMatch(/^COPILOT_CONNECTION_TOKEN=[\w-]{43}$/m);
    const token = /^COPILOT_CONNECTION_TOKEN=(\S+)$/m.exec(stderr)?.[1];
    const port = Number(/port (\d+)/.exec(started.stdoutText())?.[1]);
    const socket = connect(port, "127.0.0.1");
    const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
    connection.listen();
    await expect(connection.sendRequest("connect", {})).rejects.toThrow("AUTHENTICATION_FAILED");
    await expect(connection.sendRequest("session.create", {})).rejects.toThrow("AUTHENTICATION_FAILED");
    expect(await connection.sendRequest("connect", { token })).toMatchObject({ protocolVersion: 3 });
    connection.dispose();
  });

  test("needs no token where the user says so, on this machine only", async () => {
    const refused = start(["--no-token", "--host", "0.0.0.0"], { COPILOT_CONNECTION_TOKEN: "" });
    const [code] = await refused.ended;
    expect([code, refused.stdoutText()]).toEqual([2, ""]);
    const started = start(["--no-token"], { COPILOT_CONNECTION_TOKEN: "" });
    await expect.poll(() => started.stdoutText()).toMatch(/listening on port \d+/i);
    const socket = connect(Number(/port (\d+)/.exec(started.stdoutText())?.[1]), "127.0.0.1");
    const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
    connection.listen();
    expect(await connection.sendRequest("connect", {})).toMatchObject({ protocolVersion: 3 });
    connection.dispose();
  });

  test("needs the token that is set, whatever --no-token says: clients of the SDK set one and do not know of it", async () => {
    const started = start(["--no-token"], { COPILOT_CONNECTION_TOKEN: "secret" });
    await expect.poll(() => started.stdoutText()).toMatch(/listening on port \d+/i);
    const socket = connect(Number(/port (\d+)/.exec(started.stdoutText())?.[1]), "127.0.0.1");
    const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
    connection.listen();
    await expect(connection.sendRequest("connect", {})).rejects.toThrow("AUTHENTICATION_FAILED");
    expect(await connection.sendRequest("connect", { token: "secret" })).toMatchObject({ ok: true });
    connection.dispose();
  });
});

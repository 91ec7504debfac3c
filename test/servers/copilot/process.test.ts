import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { type CompiledSources, compileSources } from "../../compiled-sources.ts";

let compiled: CompiledSources;
let folder: string;
let child: ChildProcess | undefined;

beforeAll(() => {
  compiled = compileSources();
  folder = mkdtempSync(join(tmpdir(), "skillhost-headless-"));
});

afterEach(async () => {
  if (child?.exitCode === null && child.signalCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

afterAll(() => {
  compiled[Symbol.dispose]();
  rmSync(folder, { recursive: true, force: true });
});

function start(args: readonly string[], env: object = {}): ChildProcess & { readonly stdoutText: () => string } {
  const environment = { ...process.env, COPILOT_HOME: join(folder, "home"), ...env };
  const started = spawn(process.execPath, [compiled.path("src/cli/bin.ts"), "--headless", "--no-auto-update", ...args], {
    cwd: folder,
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
  });
  child = started;
  let text = "";
  started.stdout.on("data", (piece: Buffer) => {
    text += piece.toString();
  });
  return Object.assign(started, { stdoutText: () => text });
}

describe("the process", () => {
  test("ends with 2 and names a flag that it does not know", async () => {
    const started = start(["--stdio", "--nonexistent-flag-for-testing"]);
    let stderr = "";
    started.stderr!.on("data", (piece: Buffer) => {
      stderr += piece.toString();
    });
    const [code] = await once(started, "close");
    expect([code, started.stdoutText()]).toEqual([2, ""]);
    expect(stderr).toContain("--nonexistent-flag-for-testing");
  });

  test("ends with 0 when its input ends", async () => {
    const started = start(["--stdio"]);
    const connection = createMessageConnection(new StreamMessageReader(started.stdout!), new StreamMessageWriter(started.stdin!));
    connection.listen();
    expect(await connection.sendRequest("connect", {})).toMatchObject({ ok: true });
    started.stdin!.end();
    const [code] = await once(started, "exit");
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
    const [code0] = await once(started, "exit");
    expect(code0).toBe(0);
    const bodies = started
      .stdoutText()
      .split(/Content-Length: \d+\r\n\r\n/)
      .filter((body) => body !== "");
    expect(bodies.every((body) => JSON.parse(body).jsonrpc === "2.0")).toBe(true);
    expect(started.stdoutText()).not.toMatch(/LOADED|CALLED|WRITTEN/);
    connection.dispose();
  });

  test("listens on a port that it tells, for clients with the token only, and ends on SIGTERM", async () => {
    const started = start([], { COPILOT_CONNECTION_TOKEN: "secret" });
    await expect.poll(() => started.stdoutText(), { timeout: 10_000 }).toMatch(/listening on port \d+/i);
    const port = Number(/port (\d+)/.exec(started.stdoutText())?.[1]);
    const socket = connect(port, "127.0.0.1");
    const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
    connection.listen();
    await expect(connection.sendRequest("ping", {})).rejects.toThrow("AUTHENTICATION_FAILED");
    expect(await connection.sendRequest("connect", { token: "secret" })).toMatchObject({ protocolVersion: 3 });
    started.kill("SIGTERM");
    const [code] = await once(started, "exit");
    expect(code).toBe(0);
    connection.dispose();
  });
});

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { buildPackage } from "../built-package.ts";

const script = fileURLToPath(new URL("../../scripts/compare-copilot-contract.mjs", import.meta.url));

async function compare(folder: string, ...more: readonly string[]): Promise<readonly string[]> {
  const dist = join(buildPackage().folder, "dist");
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--dist", dist, ...more, folder]);
  return stdout.trimEnd().split("\n");
}

/** A folder with files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-contract-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "generated"));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  return folder;
}

test("schemas with a new method and a new event are reported with both names", async () => {
  const eventOf = (type: string): object => ({ properties: { type: { const: type } } });
  const definitions = {
    SessionEvent: { anyOf: [{ $ref: "#/definitions/Idle" }, { $ref: "#/definitions/Abort" }, { $ref: "#/definitions/New" }] },
    Idle: eventOf("session.idle"),
    Abort: eventOf("abort"),
    New: eventOf("session.from_the_future"),
  };
  const method = (rpcMethod: string): object => ({ rpcMethod });
  const api = {
    server: { ping: method("ping"), models: { future: method("models.future") } },
    session: { send: method("session.send"), canvas: { list: method("session.canvas.list"), open: method("session.canvas.open") } },
  };
  const folder = folderWith({ "api.schema.json": JSON.stringify(api), "session-events.schema.json": JSON.stringify({ definitions }) });
  const lines = await compare(folder);
  expect(lines.slice(0, 5)).toEqual([
    "5 methods: 2 supported, 1 answered by what is absent here, 1 refused.",
    "  canvases are not supported.",
    "    session.canvas.open",
    "Added there, unknown here:",
    "  models.future",
  ]);
  expect(lines.slice(lines.indexOf("Removed there, known here:"))).toContain("  session.create");
  expect(lines.slice(-3)).toEqual(["3 events: 2 are emitted here.", "Never emitted here:", "  session.from_the_future"]);
});

test("members that changed since an earlier runtime are listed", async () => {
  const schemasOf = (result: object, data: object): string =>
    folderWith({
      "api.schema.json": JSON.stringify({
        server: { ping: { rpcMethod: "ping", result: { $ref: "#/definitions/Pong" } } },
        session: {},
        definitions: { Pong: result, Mode: { type: "string", enum: ["a", "b"] } },
      }),
      "session-events.schema.json": JSON.stringify({
        definitions: {
          SessionEvent: { anyOf: [{ $ref: "#/definitions/Idle" }] },
          Idle: { properties: { type: { const: "session.idle" }, data } },
        },
      }),
    });
  const text = { type: "string" };
  const before = schemasOf(
    { properties: { message: text, gone: text }, required: ["message"] },
    { properties: { list: { type: "array", items: { properties: { id: text } } } } },
  );
  const after = schemasOf(
    { properties: { message: text, mode: { $ref: "#/definitions/Mode" } }, required: ["mode"] },
    { properties: { list: { type: "array", items: { properties: { id: { type: "number" } }, required: ["id"] } } } },
  );
  const lines = await compare(after, "--since", before);
  expect(lines.slice(lines.indexOf("Changed there:"))).toEqual([
    "Changed there:",
    "  ping result: gone was removed",
    '  ping result: message was "string"!, is "string"',
    '  ping result: mode was added, is ["a","b"]!',
    '  session.idle: list[].id was "string", is "number"!',
  ]);
  expect((await compare(after, "--since", after)).at(-1)).toBe("Changed there: none");
});

test("the code of an SDK is compared by the requests that it sends and by its generated events", async () => {
  const event = (name: string, type: string): string => `\nexport interface ${name}Event {\n    data: object;\n    type: "${type}";\n}\n`;
  const lines = await compare(
    folderWith({
      "client.js": 'connection.sendRequest("ping", {}); connection.sendRequest(\n "session.future", {})',
      "generated/session-events.d.ts": `${event("Idle", "session.idle")}${event("Future", "session.later")}`,
    }),
  );
  expect(lines[0]).toBe("2 methods: 1 supported, 0 answered by what is absent here, 0 refused.");
  expect(lines.slice(1, 3)).toEqual(["Added there, unknown here:", "  session.future"]);
  expect(lines.slice(-3)).toEqual(["2 events: 1 are emitted here.", "Never emitted here:", "  session.later"]);
});

test("a folder that is not there is refused with what to name", async () => {
  await expect(compare(join(tmpdir(), "none"))).rejects.toThrow(/Name the folder of an SDK/);
});

import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { HostOptions } from "../../src/host/host-options.ts";
import { createFileApprovals } from "../../src/trust/approvals.ts";
import { digestOf } from "../../src/trust/folder-digests.ts";
import type { PinPolicy } from "../../src/trust/pins/pins.ts";
import { ownerId } from "../../src/trust/pins/seen-pins.ts";
import { put, tempFolder } from "../skills/kit.ts";
import { hostIn } from "./servers-kit.ts";

/** A server in one file, which reads the description of its tool from the file beside it. */
const source = `import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
const says = process.env.SAYS ?? readFileSync("says.txt", "utf8");
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "t", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "read", description: says, inputSchema: { type: "object" } }] }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = Object.hasOwn(answers, method) ? { result: answers[method](params) } : { error: { code: -32601, message: "?" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
});`;

const command = { command: process.execPath, args: ["server.mjs"] };

function project(folder: string, says: string): string {
  mkdirSync(folder, { recursive: true });
  put(join(folder, "server.mjs"), source);
  put(join(folder, "says.txt"), says);
  return folder;
}

interface Seen {
  /** The description that a model reads. Undefined: the tool is not offered. */
  readonly offered: string | undefined;
  readonly held: readonly string[];
  readonly codes: readonly string[];
}

/** Starts the server in a new host with this working directory. */
async function look(
  home: string,
  workingDirectory: string,
  options: { pins?: PinPolicy; server?: object; approve?: boolean } = {},
): Promise<Seen> {
  const { pins = "first-use", server = command, approve = false } = options;
  const mcpServers = { files: server } as unknown as NonNullable<HostOptions["mcpServers"]>;
  const host = await hostIn(home, { mcpServers, workingDirectory, mcp: { pins, cacheDirectory: tempFolder() } });
  await using session = await host.createSession({ workingDirectory });
  await session.ready();
  if (approve) await host.approveServer("files");
  await session.ready();
  const [{ held, diagnostics }] = session.mcp.list() as unknown as [{ held: { reason: string }[]; diagnostics: { code: string }[] }];
  const offered = session.listTools().find(({ name }) => name.endsWith("read"))?.description;
  await host.close();
  return { offered, held: held.map(({ reason }) => reason), codes: diagnostics.map(({ code }) => code) };
}

describe("the pin of a local server", () => {
  test("a pin belongs to the folder in which the server runs, and the same server in another folder has its own", async () => {
    const home = tempFolder();
    const [one, two] = [project(join(home, "one"), "Reads."), project(join(home, "two"), "Reads.")];
    expect(await look(home, one, { pins: "require", approve: true })).toMatchObject({ offered: "Reads.", held: [] });
    expect(await look(home, one, { pins: "require" })).toMatchObject({ offered: "Reads.", held: [] });
    expect(await look(home, two, { pins: "require" })).toMatchObject({ offered: undefined, held: ["new"], codes: ["MCP_TOOL_UNAPPROVED"] });
    put(join(one, "says.txt"), "Sends.");
    expect(await look(home, one, { pins: "require" })).toMatchObject({ offered: undefined, held: ["changed"] });
  });

  test("a pin belongs to the real folder, regardless of the link that leads to it", async () => {
    const home = tempFolder();
    const [one, two] = [project(join(home, "one"), "Reads."), project(join(home, "two"), "Reads.")];
    const link = join(home, "current");
    const server = { ...command, cwd: link };
    symlinkSync(one, link, "junction");
    await look(home, home, { pins: "require", approve: true, server });
    expect(await look(home, one, { pins: "require" })).toMatchObject({ offered: "Reads." });
    renameSync(link, join(home, "before"));
    symlinkSync(two, link, "junction");
    expect(await look(home, home, { pins: "require", server })).toMatchObject({ offered: undefined, held: ["new"] });
  });

  test.each(["NODE_OPTIONS", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH"])(
    "a pin includes the variables that choose the server's code, such as %s, and no others",
    async (name) => {
      const home = tempFolder();
      const one = project(join(home, "one"), "Reads.");
      const value = name === "NODE_OPTIONS" ? "--no-warnings" : (process.env[name] ?? "/nowhere");
      const approved = { ...command, env: { TOKEN: "1", MODE: "a" } };
      await look(home, one, { pins: "require", approve: true, server: approved });
      const renewed = { ...command, env: { TOKEN: "2", MODE: "b" } };
      expect(await look(home, one, { pins: "require", server: renewed })).toMatchObject({ offered: "Reads." });
      const other = { ...command, env: { ...approved.env, [name]: value } };
      expect(await look(home, one, { pins: "require", server: other })).toMatchObject({ offered: undefined, held: ["new"] });
    },
  );
});

describe("a pin that an earlier version stored by command and unresolved folder", () => {
  const link = (home: string): string => join(home, "current");
  const formerOwner = (home: string): string => ownerId("files", [command.command, command.args, link(home)]);
  const tool = (description: string) => ({ name: "read", description, inputSchema: { type: "object" } });
  const common = { scope: { kind: "user" }, approvedAt: "2026-01-01T00:00:00.000Z" } as const;

  async function keepFormer(home: string, pinned: { seen?: string; approved?: string }): Promise<void> {
    const approvals = createFileApprovals({ directory: join(home, ".kept/approvals") });
    if (pinned.seen !== undefined) {
      const pins = [{ kind: "mcp-tool", name: "read", digest: digestOf(tool(pinned.seen)), content: tool(pinned.seen) }];
      await approvals.remember({ ...common, kind: "mcp-seen", id: formerOwner(home), digest: digestOf(pins), detail: { pins } });
    }
    if (pinned.approved === undefined) return;
    const content = tool(pinned.approved);
    await approvals.remember({ ...common, kind: "mcp-tool", id: `${formerOwner(home)}/read`, digest: digestOf(content), detail: content });
  }

  test("an earlier pin moves to the first real folder in which the server runs, and the move is reported once", async () => {
    const home = tempFolder();
    const [one, two] = [project(join(home, "one"), "Reads."), project(join(home, "two"), "Sends.")];
    await keepFormer(home, { seen: "Reads." });
    symlinkSync(one, link(home), "junction");
    expect(await look(home, link(home))).toEqual({ offered: "Reads.", held: [], codes: ["MCP_PINS_OUTDATED"] });
    expect(await look(home, link(home))).toEqual({ offered: "Reads.", held: [], codes: [] });
    renameSync(link(home), join(home, "before"));
    symlinkSync(two, link(home), "junction");
    expect(await look(home, link(home))).toEqual({ offered: "Sends.", held: [], codes: [] });
    const approvals = createFileApprovals({ directory: join(home, ".kept/approvals") });
    expect(await approvals.list({ id: formerOwner(home) })).toEqual([]);
  });

  test("an earlier pin withholds tools that differ from it", async () => {
    const home = tempFolder();
    project(link(home), "Sends.");
    await keepFormer(home, { seen: "Reads." });
    expect(await look(home, link(home))).toEqual({
      offered: undefined,
      held: ["changed"],
      codes: ["MCP_PINS_OUTDATED", "MCP_TOOL_CHANGED"],
    });
    expect(await look(home, link(home))).toEqual({ offered: undefined, held: ["changed"], codes: ["MCP_TOOL_CHANGED"] });
  });

  test("an earlier pin accepts tools that were approved for it", async () => {
    const home = tempFolder();
    project(link(home), "Sends.");
    await keepFormer(home, { seen: "Reads.", approved: "Sends." });
    expect(await look(home, link(home))).toEqual({ offered: "Sends.", held: [], codes: ["MCP_PINS_OUTDATED"] });
    expect(await look(home, link(home))).toEqual({ offered: "Sends.", held: [], codes: [] });
  });

  test("an earlier pin has no effect where approvals are required until the user approves it again", async () => {
    const home = tempFolder();
    project(link(home), "Reads.");
    await keepFormer(home, { approved: "Reads." });
    for (let start = 0; start < 2; start++) {
      const codes = ["MCP_PINS_OUTDATED", "MCP_TOOL_UNAPPROVED"];
      expect(await look(home, link(home), { pins: "require" })).toEqual({ offered: undefined, held: ["new"], codes });
    }
    await look(home, link(home), { pins: "require", approve: true });
    expect(await look(home, link(home), { pins: "require" })).toEqual({ offered: "Reads.", held: [], codes: [] });
  });
});

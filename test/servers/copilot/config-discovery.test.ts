import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Json, Served, type ServedOptions, type TestClient } from "./wire-kit.ts";

let served: Served;
const folders: string[] = [];

afterEach(async () => {
  await served?.[Symbol.asyncDispose]();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

// The program leaves a file behind when it runs.
const program = (mark: string): object => ({
  command: process.execPath,
  args: ["-e", `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "")`],
});

const agent = (description: string): string => `---\nname: reviewer\ndescription: ${description}\n---\nReview it.\n`;
const skill = "---\nname: found-skill\ndescription: A skill of the project.\n---\nText.\n";

const project = {
  ".mcp.json": JSON.stringify({ mcpServers: { first: program("first-ran"), shared: { command: "from-root" } } }),
  ".vscode/mcp.json": JSON.stringify({
    servers: { second: { type: "http", url: "http://127.0.0.1:1/mcp" }, shared: { command: "from-vscode" } },
  }),
  ".github/agents/reviewer.md": agent("Reviews."),
  ".claude/agents/reviewer.md": agent("Another one."),
  ".github/skills/found-skill/SKILL.md": skill,
};

async function begin(create: object, options: ServedOptions = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start({ files: project, ...options });
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", ...create }) };
}

async function found(client: TestClient, sessionId: string): Promise<Json> {
  const { servers } = await client.request("session.mcp.list", { sessionId });
  const { agents } = await client.request("session.agent.list", { sessionId });
  const { skills } = await client.request("session.skills.list", { sessionId });
  const names = (list: readonly Json[]): readonly string[] => list.map(({ name }) => name).sort();
  return {
    servers: names(servers),
    agents: names(agents),
    skills: names(skills),
    descriptions: agents.map((one: Json) => one.description),
  };
}

describe("enableConfigDiscovery", () => {
  test("finds the servers, agents and skills of a project; the first of a name wins", async () => {
    const { client, sessionId } = await begin({ enableConfigDiscovery: true });
    expect(await found(client, sessionId)).toEqual({
      servers: ["first", "second", "shared"],
      agents: ["reviewer"],
      skills: ["found-skill"],
      descriptions: ["Reviews."],
    });
  });

  test.each([{}, { enableConfigDiscovery: false }])("finds nothing with %j", async (create) => {
    const { client, sessionId } = await begin(create);
    expect(await found(client, sessionId)).toEqual({ servers: [], agents: [], skills: [], descriptions: [] });
  });

  test("reads and starts nothing of a folder that is not trusted but its skills, and reports it", async () => {
    const { client, sessionId } = await begin({ enableConfigDiscovery: true }, { server: { mayRun: async () => false } });
    expect(await found(client, sessionId)).toMatchObject({ servers: [], agents: [], skills: ["found-skill"] });
    const { data } = await client.event("session.warning");
    expect(data["message"]).toContain(".mcp.json, .vscode/mcp.json, .github/agents");
    expect(data["message"]).toContain("trust");
  });

  test("keeps the client's own servers and agents of the same names", async () => {
    const { client, sessionId } = await begin({
      enableConfigDiscovery: true,
      mcpServers: { shared: { type: "http", url: "http://127.0.0.1:1/own" } },
      customAgents: [{ name: "reviewer", description: "Of the client.", prompt: "Mine." }],
    });
    const { servers } = await client.request("session.mcp.list", { sessionId });
    expect(servers.find(({ name }: Json) => name === "shared")).toMatchObject({ transport: "http" });
    expect((await found(client, sessionId)).descriptions).toEqual(["Of the client."]);
  });

  test("reports files that cannot be used, and uses the others", async () => {
    const files = { ...project, ".github/mcp.json": "{ not json", ".github/agents/empty.md": "---\nname: [\n---\n" };
    const { client, sessionId } = await begin({ enableConfigDiscovery: true }, { files });
    expect(await found(client, sessionId)).toMatchObject({
      servers: ["first", "second", "shared"],
      agents: expect.arrayContaining(["reviewer"]),
    });
    await client.event("session.warning", ({ data }) => String(data["message"]).startsWith(".github/mcp.json: "));
  });

  test.skipIf(process.platform === "win32")("does not follow links out of the project", async () => {
    const outside = mkdtempSync(join(tmpdir(), "skillhost-outside-"));
    folders.push(outside);
    writeFileSync(join(outside, "mcp.json"), project[".mcp.json"]);
    served = await Served.start();
    symlinkSync(join(outside, "mcp.json"), join(served.folder, ".mcp.json"));
    mkdirSync(join(served.folder, ".github"));
    symlinkSync(outside, join(served.folder, ".github", "agents"));
    const client = await served.connect();
    const sessionId = await client.create({ model: "m", enableConfigDiscovery: true });
    expect(await found(client, sessionId)).toMatchObject({ servers: [], agents: [] });
    await client.event("session.warning", ({ data }) => String(data["message"]).includes("symbolic link"));
  });

  test.each([7, ["/"]])("leaves the refusal of the folder %j to the session", async (workingDirectory) => {
    served = await Served.start({ files: project });
    const client = await served.connect();
    const { message } = await client.refusal("session.create", { enableConfigDiscovery: true, workingDirectory });
    expect(message).toContain("workingDirectory");
  });

  test("refuses a value that is not a flag", async () => {
    served = await Served.start({ files: project });
    const client = await served.connect();
    expect((await client.refusal("session.create", { enableConfigDiscovery: "yes" })).message).toContain("enableConfigDiscovery");
  });
});

describe("agents of projects", () => {
  test("are discovered where getDiscoveryPaths says", async () => {
    served = await Served.start({ files: project });
    const client = await served.connect();
    const projectPaths = [served.folder];
    expect((await client.request("agents.getDiscoveryPaths", { projectPaths })).paths).toMatchObject([
      { path: join(served.folder, ".github", "agents"), scope: "project", preferredForCreation: true, projectPath: served.folder },
      { path: join(served.folder, ".claude", "agents"), preferredForCreation: false },
    ]);
    const { agents } = await client.request("agents.discover", { projectPaths, excludeHostAgents: true });
    expect(agents).toMatchObject([{ id: "reviewer", description: "Reviews.", source: "project" }]);
    expect((await client.request("agents.discover", { projectPaths: [join(served.folder, "none")] })).agents).toEqual([]);
  });
});

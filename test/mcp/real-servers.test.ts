import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { patience } from "../slowness.ts";
import { callContext, connect, nodeProgram, textOf } from "./connect-kit.ts";

const program = (name: string, ...args: string[]) =>
  nodeProgram(fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url)), ...args);

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "skillhost-mcp-")));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("server-everything: tools, prompts, resources, progress, completion and a question", async () => {
  const connection = await connect(program("everything", "stdio"));
  expect(connection.era).toBe("legacy");
  const [tools, prompts, resources, templates] = await Promise.all([
    connection.listTools(),
    connection.listPrompts(),
    connection.listResources(),
    connection.listResourceTemplates(),
  ]);
  expect([tools.length, prompts.length, resources.length, templates.length].every((count) => count > 0)).toBe(true);
  expect(await textOf(connection.callTool("echo", { message: "hi" }))).toContain("hi");
  const heard: number[] = [];
  const long = { duration: 0.2, steps: 4 };
  await connection.callTool("trigger-long-running-operation", long, {
    onProgress: ({ progress }) => heard.push(progress),
    timeout: patience(10_000),
  });
  expect(heard).toEqual([1, 2, 3, 4]);
  const prompt = await connection.getPrompt("args-prompt", { city: "Rome" });
  expect(JSON.stringify(prompt["messages"])).toContain("Rome");
  const uri = resources[0]?.["uri"] as string;
  expect((await connection.readResource(uri))["contents"]).toHaveLength(1);
  const context = callContext({ answer: () => ({ action: "decline" }) });
  expect(await textOf(connection.callTool("trigger-elicitation-request", {}, { context }))).toMatch(/declined/i);
});

test("server-filesystem: the folder that it is given as its only root, structured results as they come", async () => {
  const path = folder();
  writeFileSync(join(path, "a.txt"), "hello");
  const connection = await connect(program("filesystem", path), { workingDirectory: path });
  const result = await connection.callTool("read_text_file", { path: join(path, "a.txt") });
  expect(result).toMatchObject({ content: [{ type: "text", text: "hello" }], structuredContent: { content: "hello" } });
  expect(await connection.callTool("read_text_file", { path: "/etc/passwd" })).toMatchObject({ isError: true });
});

test("calls tools of server-memory and of server-sequential-thinking", async () => {
  const memory = await connect({ ...program("memory"), env: { MEMORY_FILE_PATH: join(folder(), "memory.jsonl") } });
  const entities = [{ name: "Ada", entityType: "person", observations: ["writes"] }];
  await memory.callTool("create_entities", { entities });
  expect(await textOf(memory.callTool("search_nodes", { query: "Ada" }))).toContain("writes");
  const thinking = await connect(program("sequential-thinking"));
  const thought = { thought: "first", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };
  expect(await thinking.callTool("sequentialthinking", thought)).toMatchObject({ structuredContent: { thoughtNumber: 1 } });
});

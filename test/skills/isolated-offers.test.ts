import type * as Skillhost from "skillhost";
import { describe, expect, test, vi } from "vitest";
import { patience } from "../slowness.ts";
import { openIsolated } from "./isolation-kit.ts";
import { skillMd, tempFolder } from "./kit.ts";

const module = `import { definePrompt, defineResource, defineTool } from "skillhost";

const names = ["a"];
let changed = () => {};
let watched: (() => void) | undefined;
export const greet = definePrompt("greet", {
  title: "Greet",
  description: "Greets.",
  arguments: { tone: { required: true, complete: ["friendly", "formal"] }, name: { description: "Whom.", complete: (typed: string, { arguments: given }: any) => [typed + "-" + given.tone] } },
  handler: ({ tone, name }: any, { context }: any) => [{ role: "assistant", content: tone + " " + name + " " + JSON.stringify(context ?? null) }, "and you"],
});
export const asks = definePrompt("asks", { handler: async (_args: any, { ask }: any) => (await ask("userInput", { question: "Which?" })).answer });
export const fails = definePrompt("fails", { handler: () => { throw new Error("no words today"); } });
export const wrong = definePrompt("wrong", { handler: () => 5 as never });
export const picture = defineResource("notes://picture", { mimeType: "image/png", read: () => new Uint8Array([1, 2, 255]) });
export const style = defineResource("notes://style.txt", {
  description: "The style.",
  annotations: { priority: 0.5 },
  read: () => "Be brief: " + names.length,
  watch: (_uri, report) => { watched = report; return () => { watched = undefined; }; },
});
export const notes = defineResource("notes://by-name/{name}", {
  complete: { name: (typed: string) => names.filter((name) => name.startsWith(typed)) },
  list: (context: any) => { changed = context.changed; return names.map((name) => ({ uri: "notes://by-name/" + name, title: name.toUpperCase() })); },
  read: (_uri, { name }) => (names.includes(name!) ? [{ text: "note " + name }] : undefined),
});
const options = { skipPermission: true, parameters: { type: "object", properties: { name: { type: "string" } } } } as const;
export const add = defineTool("add", { ...options, description: "Adds a note.", handler: ({ name }: any) => { names.push(name); changed(); watched?.(); return "added"; } });
export const is_watched = defineTool("is_watched", { ...options, description: "Whether the style is watched.", handler: () => String(watched !== undefined) });
export const exits = defineTool("exits", { ...options, description: "Ends its process.", handler: () => process.exit(3) });
`;

async function openSession(isolation: Skillhost.IsolationTier) {
  const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/all.ts": module });
  const { host } = await openIsolated(root, { isolation });
  expect(host.diagnostics.filter(({ severity }) => severity !== "info")).toEqual([]);
  const onUserInputRequest = () => ({ answer: "the second", wasFreeform: true });
  return host.createSession({ onUserInputRequest, context: { user: "u" } as never });
}

const uris = (session: Skillhost.Session): readonly string[] =>
  session
    .listResources()
    .map(({ uri }) => uri)
    .filter((uri) => uri.startsWith("notes:"));

describe.each(["off", "worker", "process"] as const)("prompts and resources of a skill whose isolation is %s", (tier) => {
  test("are the same", { timeout: patience(60_000) }, async () => {
    const session = await openSession(tier);
    expect(session.listPrompts().find(({ name }) => name === "greet")).toEqual({
      name: "greet",
      title: "Greet",
      description: "Greets.",
      arguments: [
        { name: "tone", required: true },
        { name: "name", description: "Whom." },
      ],
    });
    expect(await session.getPrompt("greet", { tone: "friendly", name: "Ada" })).toEqual({
      description: "Greets.",
      messages: [
        { role: "assistant", content: { type: "text", text: 'friendly Ada {"user":"u"}' } },
        { role: "user", content: { type: "text", text: "and you" } },
      ],
    });
    await expect(session.getPrompt("greet", {})).rejects.toMatchObject({ code: "PROMPT_ARGUMENTS" });
    expect((await session.getPrompt("asks")).messages[0]?.content["text"]).toBe("the second");
    await expect(session.getPrompt("fails")).rejects.toThrow(/no words today/);
    await expect(session.getPrompt("wrong")).rejects.toThrow(/not a message/);
    expect(session.listResources().find(({ uri }) => uri === "notes://style.txt")).toEqual({
      uri: "notes://style.txt",
      name: "style.txt",
      description: "The style.",
      mimeType: "text/plain",
      annotations: { priority: 0.5 },
    });
    expect(await session.readResource("notes://picture")).toEqual([{ uri: "notes://picture", mimeType: "image/png", blob: "AQL/" }]);
    expect(await session.readResource("notes://by-name/a")).toEqual([{ uri: "notes://by-name/a", mimeType: "text/plain", text: "note a" }]);
    await expect(session.readResource("notes://by-name/z")).rejects.toMatchObject({ code: "RESOURCE_UNKNOWN" });
    expect(await session.complete({ type: "ref/prompt", name: "greet" }, { name: "tone", value: "fo" })).toMatchObject({
      values: ["formal"],
    });
    await session.disconnect();
  });

  test("lists and watched resources report changes, also of a child that took the place of one that ended", {
    timeout: patience(60_000),
  }, async () => {
    const session = await openSession(tier);
    const reports: string[] = [];
    const watch = await session.watchResource("notes://style.txt", () => void reports.push("changed"));
    expect((await session.callTool("is_watched", {})).text).toBe("true");
    expect(uris(session)).toEqual(["notes://by-name/a", "notes://picture", "notes://style.txt"]);
    await session.callTool("add", { name: "b" });
    await vi.waitFor(() => expect(uris(session)).toContain("notes://by-name/b"), { timeout: patience(10_000) });
    await vi.waitFor(() => expect(reports).toEqual(["changed"]), { timeout: patience(10_000) });
    if (tier !== "off") {
      expect((await session.callTool("exits", {})).ok).toBe(false);
      // A new child starts with its first state.
      await vi.waitFor(() => expect(uris(session)).not.toContain("notes://by-name/b"), { timeout: patience(10_000) });
      await vi.waitFor(async () => expect((await session.callTool("is_watched", {})).text).toBe("true"), { timeout: patience(10_000) });
    }
    await watch[Symbol.asyncDispose]();
    expect((await session.callTool("is_watched", {})).text).toBe("false");
    await session.disconnect();
  });
});

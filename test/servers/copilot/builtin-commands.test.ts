import { afterEach, describe, expect, test } from "vitest";
import { type Json, Served } from "./wire-kit.ts";

let served: Served;

afterEach(() => served[Symbol.asyncDispose]());

async function open(options: Json = {}) {
  served = await Served.start();
  const client = await served.connect();
  const sessionId: string = await client.create({ model: "m", ...options });
  const invoke = (name: string, input?: string): Promise<Json> =>
    client.request("session.commands.invoke", { sessionId, name, ...(input && { input }) });
  return { client, sessionId, invoke };
}

describe("built-in commands", () => {
  test("help, model and compact are listed, and help names every command of the session", async () => {
    const { client, sessionId, invoke } = await open({ commands: [{ name: "deploy", description: "Ships it." }] });
    const { commands } = await client.request("session.commands.list", { sessionId });
    expect(commands.map(({ name, kind }: Json) => [name, kind])).toEqual([
      ["deploy", "client"],
      ["help", "builtin"],
      ["model", "builtin"],
      ["compact", "builtin"],
    ]);
    const only = await client.request("session.commands.list", { sessionId, includeBuiltins: false });
    expect(only.commands.map(({ name }: Json) => name)).toEqual(["deploy"]);
    const { kind, text } = await invoke("help");
    expect(kind).toBe("text");
    for (const line of ["/deploy: Ships it.", "/help: ", "/model <name of the model>: ", "/compact <"]) expect(text).toContain(line);
  });

  test("model shows the model of the session, and changes it", async () => {
    const { client, sessionId, invoke } = await open();
    expect(await invoke("model")).toEqual({ kind: "text", text: "The model is m. Select another with /model <name>." });
    expect(await invoke("model", " other ")).toEqual({ kind: "completed", message: "The model is other from now on." });
    expect(await client.request("session.model.getCurrent", { sessionId })).toMatchObject({ modelId: "other" });
  });

  test("compact summarizes the conversation, also from the queue, and reports a failure", async () => {
    const { client, sessionId, invoke } = await open();
    served.says("One.", "<overview>Short.</overview>");
    await client.say(sessionId, "First.");
    expect(await invoke("compact", "Keep names.")).toEqual({ kind: "completed", message: "A summary took the place of 2 messages." });
    expect((await client.event("session.compaction_complete")).data).toMatchObject({
      success: true,
      trigger: "manual",
      customInstructions: "Keep names.",
    });
    served.says("Again.");
    await client.request("session.commands.enqueue", { sessionId, command: "/compact" });
    await client.event("session.compaction_complete", ({ data }) => data["summaryContent"] === "Again.");
    served.says("");
    const refusal = await client.refusal("session.commands.invoke", { sessionId, name: "compact" });
    expect(refusal.message).toContain("Compaction failed: The model returned an empty summary.");
  });

  test("a command of a client with the same name takes precedence, and an unknown one is refused", async () => {
    const { client, sessionId, invoke } = await open({ commands: [{ name: "help", description: "Ours." }] });
    const { commands } = await client.request("session.commands.list", { sessionId });
    expect(commands.filter(({ name }: Json) => name === "help")).toMatchObject([{ kind: "client", description: "Ours." }]);
    const invoked = invoke("help");
    const { data } = await client.event("command.execute");
    await client.request("session.commands.handlePendingCommand", { sessionId, requestId: data["requestId"] });
    expect(await invoked).toEqual({ kind: "completed" });
    expect((await client.refusal("session.commands.invoke", { sessionId, name: "constructor" })).message).toContain("constructor");
  });
});

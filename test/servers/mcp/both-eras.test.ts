import { describe, expect, test } from "vitest";
import { approveAll } from "../../../src/tools/tool.ts";
import { deferred, eras, serveSkill, textOf, toolModule } from "./serving-kit.ts";

const yes = { session: { onPermissionRequest: approveAll }, http: { asksPermission: false } };

const tools = toolModule(`[
  defineTool("greet", {
    title: "Greet",
    description: "Greets.",
    parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    annotations: { readOnlyHint: true },
    metadata: { "example.com/kind": "greeting" },
    handler: ({ name }) => \`Hello \${name}\`,
  }),
  defineTool("measure", {
    description: "Measures.",
    outputSchema: { type: "object", properties: { metres: { type: "number" } }, required: ["metres"] },
    handler: () => ({ metres: 3 }),
  }),
  defineTool("draw", { description: "Draws.", handler: () => ({ textResultForLlm: "A dot.", binaryResultsForLlm: [{ data: "AAAA", mimeType: "image/png", type: "image" }] }) }),
  defineTool("fail", { description: "Fails.", handler: () => { throw new Error("the password is hunter2"); } }),
  defineTool("steps", {
    description: "Reports its steps.",
    handler: (_args, _invocation, { progress }) => {
      progress({ message: "first" });
      progress({ progress: 1, total: 2 });
      progress({ message: "between" });
      progress({ progress: 2, total: 2 });
      progress({ level: "warning", message: "careful", data: { step: 2 } });
      return "done";
    },
  }),
  defineTool("wait", {
    description: "Waits until it is cancelled.",
    handler: (_args, { signal }, { progress }) => {
      progress({ progress: 1 });
      return new Promise((resolve) => signal.addEventListener("abort", () => { globalThis.endedBySignal?.(); resolve("cancelled"); }));
    },
  }),
]`);

describe.each(eras)("a client of the %s era", (era) => {
  test("lists the tools in a stable order, with everything that their definitions say", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const client = await served.connect(era);
    const { tools: listed } = await client.listTools();
    expect(listed.map(({ name }) => name)).toEqual(["draw", "fail", "greet", "measure", "steps", "wait"]);
    expect(listed[2]).toMatchObject({
      title: "Greet",
      description: "Greets.",
      inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      annotations: { readOnlyHint: true },
      _meta: { "example.com/kind": "greeting" },
    });
    expect(listed[0]).toMatchObject({ inputSchema: { type: "object" } });
    expect(listed[3]?.outputSchema).toMatchObject({ type: "object", required: ["metres"] });
  });

  test("gets results with their structure, images and failures, and nothing that a handler threw", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools }, yes);
    const client = await served.connect(era);
    await client.listTools();
    expect(textOf(await client.callTool({ name: "greet", arguments: { name: "Ada" } }))).toBe("Hello Ada");
    expect(await client.callTool({ name: "measure" })).toMatchObject({
      structuredContent: { metres: 3 },
      content: [{ type: "text", text: '{"metres":3}' }],
    });
    expect(await client.callTool({ name: "draw" })).toMatchObject({
      content: [
        { type: "text", text: "A dot." },
        { type: "image", data: "AAAA", mimeType: "image/png" },
      ],
    });
    const failed = await client.callTool({ name: "fail" });
    expect(failed.isError).toBe(true);
    expect(JSON.stringify(failed)).not.toContain("hunter2");
    expect((await client.callTool({ name: "greet", arguments: { name: 7 } })).isError).toBe(true);
    await expect(client.callTool({ name: "nothing" })).rejects.toMatchObject({ code: -32602 });
    await expect(client.callTool({ name: "helper/greet", arguments: { name: "Ada" } })).rejects.toMatchObject({ code: -32602 });
  });

  test("hears of progress that always rises, and of log lines", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools }, yes);
    const lines: unknown[] = [];
    const client = await served.connect(era, (made) =>
      made.setNotificationHandler("notifications/message", ({ params }) => void lines.push(params)),
    );
    const seen: { progress: number; total?: number | undefined; message?: string | undefined }[] = [];
    const options = { onprogress: (update: (typeof seen)[number]) => void seen.push(update) };
    const _meta = { "io.modelcontextprotocol/logLevel": "info" };
    expect(textOf(await client.callTool({ name: "steps", ...(era === "modern" && { _meta }) }, options))).toBe("done");
    expect(seen.map(({ message, progress }) => message ?? progress)).toEqual(["first", 1, "between", 2]);
    expect(seen.every(({ progress }, index) => index === 0 || progress > seen[index - 1]!.progress)).toBe(true);
    expect(lines).toEqual([{ level: "warning", logger: "steps", data: { message: "careful", data: { step: 2 } } }]);
  });

  test("cancels a call: its signal fires", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools }, yes);
    const ended = deferred();
    Object.assign(globalThis, { endedBySignal: () => ended.resolve() });
    const client = await served.connect(era);
    const stop = new AbortController();
    const call = client.callTool({ name: "wait" }, { signal: stop.signal, onprogress: () => stop.abort() });
    await expect(call).rejects.toThrow();
    await ended.promise;
  });

  test("a client is notified when a save changes the tools, and only then", async () => {
    await using served = await serveSkill({ "tools/one.ts": toolModule(`defineTool("one", { description: "First.", handler: () => 1 })`) });
    const heard = deferred<readonly string[]>();
    const client = await served.connect(era);
    let notifications = 0;
    client.setNotificationHandler("notifications/tools/list_changed", async () => {
      notifications++;
      heard.resolve((await client.listTools()).tools.map(({ description }) => description ?? ""));
    });
    await client.listTools();
    if (era === "modern") await client.listen({ toolsListChanged: true });
    await served.test.change(() =>
      served.skill.write("tools/one.ts", toolModule(`defineTool("one", { description: "First.", handler: () => 2 })`)),
    );
    await served.test.change(() =>
      served.skill.write("tools/one.ts", toolModule(`defineTool("one", { description: "Second.", handler: () => 2 })`)),
    );
    expect(await heard.promise).toEqual(["Second."]);
    expect(notifications).toBe(1);
  });
});

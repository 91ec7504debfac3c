import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { Runtime, type Sdk } from "./sdk-kit.ts";

const sdkPath = join(dirname(fileURLToPath(import.meta.url)), "node_modules/@github/copilot-sdk/dist");

const extension = `
import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({
  tools: [{
    name: "project_motto",
    description: "Returns the motto of the project.",
    parameters: { type: "object", properties: {} },
    skipPermission: true,
    handler: async () => "Small files, true words.",
  }],
  hooks: { onUserPromptSubmitted: async ({ prompt }) => ({ modifiedPrompt: prompt + " (as the extension has it)" }) },
});
await session.log("The extension is ready.");
`;

let runtime: Runtime;
beforeAll(async () => {
  runtime = await Runtime.start();
}, patience(300_000));
afterAll(() => runtime[Symbol.asyncDispose]());

test("an extension that uses the official SDK joins the session that started it", async () => {
  const workingDirectory = runtime.place({ ".github/extensions/motto/extension.mjs": extension });
  let onReady = (): void => {};
  const ready = new Promise<void>((resolve) => {
    onReady = resolve;
  });
  const onEvent = ({ type, data }: Sdk): void => {
    if (type === "session.info" && data.message === "The extension is ready.") onReady();
  };
  const session = await runtime.session({ workingDirectory, requestExtensions: true, extensionSdkPath: sdkPath, onEvent });
  await ready;
  const { extensions } = await session.rpc.extensions.list();
  expect(extensions).toEqual([{ id: "project:motto", name: "motto", source: "project", status: "running", pid: expect.any(Number) }]);
  runtime.says({ toolCalls: [{ id: "1", name: "project_motto", arguments: {} }] }, "Said.");
  const reply = await session.sendAndWait({ prompt: "The motto?" });
  expect([reply.data.content, runtime.lastToolResult]).toEqual(["Said.", "Small files, true words."]);
  expect(JSON.stringify(runtime.asked.messages)).toContain("The motto? (as the extension has it)");
  await session.rpc.extensions.disable({ id: "project:motto" });
  expect((await session.rpc.extensions.list()).extensions).toMatchObject([{ status: "disabled" }]);
  await session.disconnect();
});

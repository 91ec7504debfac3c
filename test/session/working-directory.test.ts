import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ToolInvocation } from "../../src/tools/tool.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { createTestEnvironment, openSession, recordEvents, type TestEnvironment } from "./session-kit.ts";

interface Folders {
  readonly environment: TestEnvironment;
  readonly first: string;
  readonly second: string;
}

function folders(): Folders {
  const environment = createTestEnvironment();
  const root = realpathSync(environment.folder);
  const [first, second] = [join(root, "first"), join(root, "second")];
  for (const folder of [first, second]) {
    mkdirSync(join(folder, ".git"), { recursive: true });
    writeFileSync(join(folder, "AGENTS.md"), `Rules of ${folder}.`);
  }
  return { environment, first, second };
}

/** Returns the folder that it is called in. */
const where = {
  name: "where",
  handler: (_args: unknown, { workingDirectory }: ToolInvocation) => workingDirectory,
};

const pathTool = {
  name: "touch",
  parameters: { type: "object", properties: { path: { type: "string" } } },
  handler: () => "touched",
} as const;

describe("a session that moves to another folder", () => {
  test("tools, hooks, instruction files and the system message follow", async () => {
    const { environment, first, second } = folders();
    const seen: string[] = [];
    const chat = fakeChat("One.", { calls: [{ name: "where" }] }, "Two.");
    const session = openSession(environment, {
      workingDirectory: first,
      tools: [where],
      chatModel: chat,
      customInstructions: { files: true },
      hooks: { onPreToolUse: ({ cwd }) => void seen.push(cwd) },
    });
    const events = recordEvents(session, "session.context_changed");
    await session.sendAndWait("Start.");
    await session.setWorkingDirectory(second);
    await session.sendAndWait("Continue.");
    const [before, after, result] = chat.requests.map(({ messages }) => messages);
    expect(before?.[0]?.content).toContain(`Rules of ${first}.`);
    expect(after?.[0]?.content).toContain(`Rules of ${second}.`);
    expect(after?.[0]?.content).toContain(`Working directory: ${second}`);
    expect(after?.[0]?.content).not.toContain(first);
    expect(result?.at(-1)).toMatchObject({ role: "tool", content: second });
    expect(seen).toEqual([second]);
    expect(events.map(({ data }) => data)).toEqual([{ cwd: second, gitRoot: second }]);
    expect((await session.callTool("where")).textResultForLlm).toBe(second);
  });

  test("a path from the folder so far is understood, and the same folder changes nothing", async () => {
    const { environment, first, second } = folders();
    const session = openSession(environment, { workingDirectory: first });
    const events = recordEvents(session, "session.context_changed");
    await session.setWorkingDirectory("../second");
    await session.setWorkingDirectory(".");
    expect([session.config.workingDirectory, events.length]).toEqual([second, 1]);
  });

  test("rules for paths follow, and those about the old folder do not reach it any more", async () => {
    const { environment, first, second } = folders();
    const asked: unknown[] = [];
    const session = openSession(environment, {
      workingDirectory: first,
      tools: [pathTool],
      permissions: { deny: ["touch(secret/**)"] },
      onPermissionRequest: ({ toolArgs }) => {
        asked.push(toolArgs);
        return { kind: "approve-once" };
      },
    });
    const touch = async (path: string) => (await session.callTool("touch", { path })).resultType;
    expect(await touch(join(first, "secret/a"))).toBe("denied");
    await session.setWorkingDirectory(second);
    expect(await touch(join(second, "secret/a"))).toBe("denied");
    expect(await touch("secret/a")).toBe("denied");
    expect(asked).toEqual([]);
  });

  test("files may be attached from the new folder and not from the old one", async () => {
    const { environment, first, second } = folders();
    const chat = fakeChat("ok");
    const session = openSession(environment, { workingDirectory: first, chatModel: chat, additionalDirectories: ["shared"] });
    mkdirSync(join(first, "shared"));
    writeFileSync(join(first, "shared", "a.txt"), "shared text");
    await session.setWorkingDirectory(second);
    const attach = (path: string) => session.sendAndWait({ prompt: "Look.", attachments: [{ type: "file", path }] });
    await attach("AGENTS.md");
    await attach(join(first, "shared", "a.txt"));
    expect(JSON.stringify(chat.requests.at(-1))).toContain("shared text");
    await expect(attach(join(first, "AGENTS.md"))).rejects.toMatchObject({ code: "ATTACHMENT_OUTSIDE" });
  });

  test("relative paths of options stay the folders that they were", async () => {
    const { environment, first, second } = folders();
    const session = openSession(environment, { workingDirectory: first, skillDirectories: ["skills"], largeOutput: { outputDir: "out" } });
    const before = session.config;
    await session.setWorkingDirectory(second);
    expect(session.config.view.key).toBe(before.view.key);
    expect(session.config.largeOutput).toEqual(before.largeOutput);
    expect(session.config.servers).toEqual(before.servers);
  });

  test("a call that runs keeps its folder", async () => {
    const { environment, first, second } = folders();
    let move = (): Promise<void> => Promise.resolve();
    const slow = {
      name: "slow",
      handler: async (_args: unknown, { workingDirectory }: ToolInvocation) => {
        await move();
        return workingDirectory;
      },
    };
    const session = openSession(environment, { workingDirectory: first, tools: [slow] });
    move = () => session.setWorkingDirectory(second);
    expect((await session.callTool("slow")).textResultForLlm).toBe(first);
    expect(session.config.workingDirectory).toBe(second);
  });
});

describe("a folder that a session cannot move to", () => {
  test.each([
    ["one that does not exist", "missing"],
    ["a file", "AGENTS.md"],
    ["one with a NUL", "a\0b"],
    ["no text", 5],
    ["nothing", undefined],
  ])("%s is refused, and nothing changes", async (_title, directory) => {
    const { environment, first } = folders();
    const session = openSession(environment, { workingDirectory: first });
    const before = session.config;
    const events = recordEvents(session, "session.context_changed", "session.options_changed");
    await expect(session.setWorkingDirectory(directory as string)).rejects.toMatchObject({ code: "SESSION_OPTIONS" });
    expect(session.config).toBe(before);
    expect(events).toEqual([]);
  });

  test("a closed session does not move", async () => {
    const { environment, first, second } = folders();
    const session = openSession(environment, { workingDirectory: first });
    await session.disconnect();
    await expect(session.setWorkingDirectory(second)).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });
});

test("a working directory that disappears is a warning, once, and the session can move on", async () => {
  const { environment, first, second } = folders();
  const chat = fakeChat("ok");
  const session = openSession(environment, { workingDirectory: first, chatModel: chat, customInstructions: { files: true } });
  const warnings = recordEvents(session, "session.warning");
  rmSync(first, { recursive: true });
  await session.sendAndWait("One.");
  await session.sendAndWait("Two.");
  expect(warnings.map(({ data }) => data)).toEqual([
    { warningType: "working_directory", message: expect.stringContaining(`${first} no longer exists`) },
  ]);
  await session.setWorkingDirectory(second);
  await session.sendAndWait("Three.");
  expect(warnings).toHaveLength(1);
  expect(chat.requests.at(-1)?.messages[0]?.content).toContain(`Rules of ${second}.`);
});

import { isAbsolute, join } from "node:path";
import { describe, expect, test } from "vitest";
import { changeSessionConfig, resolveSessionConfig, type SessionOptions } from "../../src/session/session-config.ts";

const defaults = { sessionId: "default-id", workingDirectory: "/work" };
const resolve = (options: object): ReturnType<typeof resolveSessionConfig> => resolveSessionConfig(options as SessionOptions, defaults);

test("absent options have their defaults", () => {
  const config = resolve({});
  expect(config).toMatchObject({
    sessionId: "default-id",
    workingDirectory: "/work",
    tools: [],
    waitForAttachments: false,
    toolTimeout: 120_000,
    largeOutput: { maxSizeBytes: 51_200 },
    hookTimeout: 60_000,
  });
  expect(Object.keys(config.hooks)).toHaveLength(12);
  expect(Object.values(config.hooks).flat()).toEqual([]);
  expect(Object.isFrozen(config)).toBe(true);
});

test("undefined counts as absent, and a single hook as an array of one", () => {
  const hook = (): undefined => undefined;
  const config = resolve({ model: undefined, hooks: { onPreToolUse: hook, onPostToolUse: [hook, hook], onPostToolUseFailure: undefined } });
  expect(config.hooks).toMatchObject({ preToolUse: [hook], postToolUse: [hook, hook], postToolUseFailure: [] });
});

test("folders are relative to the working directory, which is relative to the host's", () => {
  const config = resolve({ workingDirectory: "sub", skillDirectories: ["mine", "/abs", "~/home"], largeOutput: { outputDir: "out" } });
  expect(config.workingDirectory).toBe("/work/sub");
  expect(config.view.skillDirectories).toEqual(["/work/sub/mine", "/abs", "~/home"]);
  expect(config.largeOutput.outputDir).toBe(join("/work/sub", "out"));
});

describe("an invalid session configuration is refused with the name of the option", () => {
  test.each<[object, string]>([
    [{ modle: "x" }, "modle"],
    [{ model: 3 }, "model"],
    [{ model: "" }, "model"],
    [{ sessionId: "../up" }, "sessionId"],
    [{ sessionId: ".." }, "sessionId"],
    [{ sessionId: "a/b" }, "sessionId"],
    [{ workingDirectory: "a\0b" }, "workingDirectory"],
    [{ tools: {} }, "tools"],
    [{ availableTools: "view" }, "availableTools"],
    [{ availableTools: ["view", 3] }, "availableTools[1]"],
    [{ excludedTools: ["*"] }, "excludedTools[0]"],
    [{ toolFilterPrecedence: "both" }, "toolFilterPrecedence"],
    [{ disabledSkills: [null] }, "disabledSkills[0]"],
    [{ hooks: [] }, "hooks"],
    [{ hooks: { onPreToolUse: "x" } }, "onPreToolUse"],
    [{ hooks: { preToolUse: () => {} } }, "preToolUse"],
    [{ hookTimeout: -1 }, "hookTimeout"],
    [{ permissions: ["t"] }, "permissions"],
    [{ permissions: { allowed: ["t"] } }, "allowed"],
    [{ permissions: { deny: "t" } }, "deny"],
    [{ permissions: { ask: [1] } }, "ask[0]"],
    [{ onPermissionRequest: true }, "onPermissionRequest"],
    [{ waitForAttachments: 1 }, "waitForAttachments"],
    [{ toolTimeout: 0 }, "toolTimeout"],
    [{ toolTimeout: Number.NaN }, "toolTimeout"],
    [{ largeOutput: { maxSizeBytes: "1" } }, "maxSizeBytes"],
    [{ largeOutput: { maxSize: 1 } }, "maxSize"],
    [JSON.parse('{"__proto__": {"model": "x"}}'), "__proto__"],
    [{ constructor: 1 }, "constructor"],
  ])("an invalid session configuration is refused: %j", (options, field) => {
    expect(() => resolve(options)).toThrow(expect.objectContaining({ code: "SESSION_OPTIONS", message: expect.stringContaining(field) }));
  });

  test.each([null, undefined, 3, "x", []])("a session configuration of %j is refused", (options) => {
    expect(() => resolve(options as never)).toThrow(expect.objectContaining({ code: "SESSION_OPTIONS" }));
  });
});

describe("updating a session's configuration", () => {
  const config = resolve({ workingDirectory: "sub", model: "one", excludedTools: ["view"], largeOutput: { outputDir: "out" } });

  test("an update keeps absent options and resets those given as undefined", () => {
    const next = changeSessionConfig(config, { model: "two", excludedTools: undefined });
    expect(next).toMatchObject({ sessionId: "default-id", workingDirectory: "/work/sub", view: { model: "two" } });
    expect(next.view.filter.patterns).toEqual([]);
    expect(next.largeOutput).toEqual(config.largeOutput);
    expect(isAbsolute(changeSessionConfig(next, { skillDirectories: ["s"] }).view.skillDirectories[0]!)).toBe(true);
    expect(config.view.model).toBe("one");
  });

  test.each(["sessionId", "workingDirectory", "tools", "waitForAttachments"])("an update cannot change %s", (field) => {
    expect(() => changeSessionConfig(config, { [field]: undefined } as never)).toThrow(
      expect.objectContaining({ code: "SESSION_OPTIONS", message: expect.stringContaining(field) }),
    );
  });
});

test("views are equal when everything that the tools depend on is equal", () => {
  const key = (options: object): string => resolve(options).view.key;
  expect(key({ sessionId: "a", toolTimeout: 5 })).toBe(key({ sessionId: "b" }));
  expect(key({ toolFilterPrecedence: "excluded" })).toBe(key({}));
  for (const options of [
    { model: "m" },
    { availableTools: [] },
    { excludedTools: ["a"] },
    { disabledSkills: ["s"] },
    { skillDirectories: ["s"] },
  ]) {
    expect(key(options)).not.toBe(key({}));
  }
});

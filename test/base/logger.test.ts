import { expect, test } from "vitest";
import { createLogger, redact, redactText } from "../../src/base/logger.ts";

const logInto = (lines: string[], level: "error" | "warning" | "info" | "debug") =>
  createLogger({ level, write: (line) => lines.push(line), now: () => new Date(0) });

test("writes one JSON object a line and leaves out what is below the level", () => {
  const lines: string[] = [];
  const log = logInto(lines, "info");
  log.error("it broke", { file: "a.ts" });
  log.info("loaded", { skills: 3 });
  log.debug("detail");
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { time: "1970-01-01T00:00:00.000Z", level: "error", message: "it broke", file: "a.ts" },
    { time: "1970-01-01T00:00:00.000Z", level: "info", message: "loaded", skills: 3 },
  ]);
  expect([log.enabled("info"), log.enabled("debug")]).toEqual([true, false]);
});

test.each([
  ["Authorization: Bearer abcdefghijkl.mno", "Authorization: [redacted]"],
  ["https://me:hunter22@host/x", "https://[redacted]@host/x"],
  ["key sk-abcdefghijklmnop1234 used", "key [redacted] used"],
  ["ghp_0123456789abcdefABCDEF", "[redacted]"],
  ["/tmp/skillhost-session-42/npm-packages-of-skills", "/tmp/skillhost-session-42/npm-packages-of-skills"],
  ["nothing secret in this task-force-of-twelve", "nothing secret in this task-force-of-twelve"],
])("a log line contains no credentials of %j", (text, expected) => {
  expect(redactText(text)).toBe(expected);
});

test("replaces values whose key names a secret, at any depth, in a copy", () => {
  const data = { headers: { authorization: "x", accept: "y" }, list: [{ apiKey: "z" }], tokenCount: null };
  expect(redact(data)).toEqual({
    headers: { authorization: "[redacted]", accept: "y" },
    list: [{ apiKey: "[redacted]" }],
    tokenCount: null,
  });
  expect(data.headers.authorization).toBe("x");
});

test("never throws, whatever is logged and whatever the sink does", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  const log = createLogger({
    level: "debug",
    write: () => {
      throw new Error("disk full");
    },
  });
  expect(() => log.debug("x", cyclic)).not.toThrow();
  expect(() => logInto([], "debug").info("x", { big: 1n })).not.toThrow();
});

test("counts of tokens and the number of a request are not redacted", () => {
  const frame = {
    params: { _meta: { progressToken: 7 }, maxTokens: 100 },
    usage: { outputTokens: 3, tokenLimit: 8_000 },
    refreshTokens: ["r"],
    token: 5,
  };
  expect(redact(frame)).toEqual({ ...frame, refreshTokens: "[redacted]", token: "[redacted]" });
});

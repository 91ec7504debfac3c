import { expect, test } from "vitest";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, openSession, recordEvents } from "../session-kit.ts";

const moment = new Date("2026-08-07T10:28:23.912Z");

function dateIn(content: unknown): Date {
  const [, text = ""] = /<current_datetime>(.*)<\/current_datetime>/.exec(String(content)) ?? [];
  expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/);
  return new Date(text);
}

test("a message names the date before the prompt, in local time, and the event keeps what was sent", async () => {
  const chat = fakeChat("ok");
  const session = openSession(createTestEnvironment(), { chatModel: chat, currentDateTime: () => moment });
  const events = recordEvents(session, "user.message");
  await session.sendAndWait("What day is it?");
  const content = String(chat.requests[0]?.messages.at(-1)?.content);
  expect(dateIn(content)).toEqual(moment);
  expect(content).toMatch(/^<current_datetime>[^<]*<\/current_datetime>\n\nWhat day is it\?$/);
  expect(events[0]?.data).toMatchObject({ content: "What day is it?", transformedContent: content });
});

test("the date is that of the machine by default, and hooks see it", async () => {
  const seen: string[] = [];
  const hooks = {
    onUserPromptTransformed: ({ transformedPrompt }: { readonly transformedPrompt: string }) => void seen.push(transformedPrompt),
  };
  const begun = Date.now();
  await openSession(createTestEnvironment(), {
    chatModel: fakeChat("ok"),
    currentDateTime: undefined,
    hooks,
  } as SessionOptions).sendAndWait("Hi");
  expect(dateIn(seen[0]).getTime()).toBeGreaterThanOrEqual(begun);
});

test("what was sent before stays the same, so that prompt caches keep it", async () => {
  let time = moment.getTime();
  const tick = (): Date => {
    time += 60_000;
    return new Date(time);
  };
  const chat = fakeChat("One.", "Two.");
  const session = openSession(createTestEnvironment(), { chatModel: chat, currentDateTime: tick });
  await session.sendAndWait("First.");
  await session.sendAndWait("Second.");
  const [before = [], after = []] = chat.requests.map(({ messages }) => messages);
  expect(after.slice(0, before.length)).toEqual(before);
  expect(dateIn(after.at(-1)?.content).getTime() - dateIn(before.at(-1)?.content).getTime()).toBe(60_000);
});

test("the model reads no date when that is switched off", async () => {
  const chat = fakeChat("ok");
  await openSession(createTestEnvironment(), { chatModel: chat, currentDateTime: false }).sendAndWait("Hi");
  expect(JSON.stringify(chat.requests)).not.toContain("current_datetime");
});

test("the option is refused when it is something else", () => {
  expect(() => openSession(createTestEnvironment(), { currentDateTime: "now" } as unknown as SessionOptions)).toThrow(/currentDateTime/);
});

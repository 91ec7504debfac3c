import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseStoredCalls } from "../../src/formats/calls/stored-calls.ts";
import { removeStoredCall, saveStoredCall } from "../../src/host/stored-calls/edit-call-file.ts";
import { takeFileLock } from "../../src/io/file-lock.ts";

const { signal } = new AbortController();
const running = { signal };
const call = (name: string, more: object = {}) => ({ name, tool: "weather", arguments: { city: name }, isAutomatic: false, ...more });

function folder(text?: string) {
  const inside = mkdtempSync(join(tmpdir(), "calls-"));
  const path = join(inside, "calls.json");
  if (text !== undefined) writeFileSync(path, text);
  return {
    inside,
    path,
    read: () => readFileSync(path, "utf8"),
    names: () => parseStoredCalls(readFileSync(path, "utf8"), path).calls.map(({ name }) => name),
    [Symbol.dispose]: () => rmSync(inside, { recursive: true }),
  };
}

test("twenty writers at once lose no call, and leave only the file", async () => {
  using file = folder();
  const names = Array.from({ length: 20 }, (_, index) => `call ${index}`);
  await Promise.all(names.map((name) => saveStoredCall(file, call(name), running)));
  expect(file.names().toSorted()).toEqual(names.toSorted());
  expect(readdirSync(file.inside)).toEqual(["calls.json"]);
});

test("a call that is added and removed leaves the file as it was", async () => {
  const text = '{\n\t"$schema": "x",\n\t"calls": {\n\t\t"b": { "tool": "t", "note": 1 },\n\t\t"a": { "tool": "t" }\n\t}\n}\n';
  using file = folder(text);
  await saveStoredCall(file, call("c"), running);
  expect(file.names()).toEqual(["b", "a", "c"]);
  expect(await removeStoredCall(file, "c", running)).toBe(true);
  expect(file.read()).toBe(text);
  expect(await removeStoredCall(file, "c", running)).toBe(false);
});

test("a changed call keeps its place and its unknown members, and loses an expectation that is gone", async () => {
  using file = folder('{"calls":{"b":{"tool":"old","note":1,"expect":{"ok":true}},"a":{"tool":"t"}}}');
  await saveStoredCall(file, call("b", { isAutomatic: true }), running);
  expect(file.names()).toEqual(["b", "a"]);
  expect(JSON.parse(file.read()).calls.b).toEqual({ tool: "weather", note: 1, arguments: { city: "b" }, automatic: true });
});

test("a call that is stored again with another tool and arguments keeps what is expected of it", async () => {
  using file = folder('{"calls":{"b":{"tool":"old","expect":{"text":"x"},"automatic":true}}}');
  await saveStoredCall(file, call("b"), { signal, keepsRest: true });
  expect(JSON.parse(file.read()).calls.b).toEqual({ tool: "weather", arguments: { city: "b" }, expect: { text: "x" }, automatic: true });
});

test.each([
  ["not JSON", '{"calls": {'],
  ["a key twice", '{"calls":{"a":{"tool":"t"},"a":{"tool":"u"}}}'],
  ["calls that are a list", '{"calls":[]}'],
])("a file with %s is not changed", async (_what, text) => {
  using file = folder(text);
  await expect(saveStoredCall(file, call("c"), running)).rejects.toMatchObject({ code: "CALLS_UNREADABLE" });
  expect(file.read()).toBe(text);
});

test("a call that could not be read again is refused before anything is written", async () => {
  using file = folder();
  await expect(saveStoredCall(file, call("a", { expect: { matches: "(" } }), running)).rejects.toMatchObject({ code: "CALL_INVALID" });
  await expect(saveStoredCall(file, call("__proto__"), running)).rejects.toMatchObject({ code: "CALL_INVALID" });
  const args = JSON.parse('{"__proto__":{"a":1}}') as object;
  await expect(saveStoredCall(file, call("a", { arguments: args }), running)).rejects.toThrow('The key "__proto__" is ignored.');
  expect(existsSync(file.path)).toBe(false);
});

test.skipIf(process.platform === "win32")("a link that points out of the folder is not followed", async () => {
  using file = folder();
  using other = folder('{"calls":{}}');
  const inside = join(file.inside, "skill");
  mkdirSync(inside);
  symlinkSync(other.path, join(inside, "calls.json"));
  const linked = { path: join(inside, "calls.json"), inside };
  await expect(saveStoredCall(linked, call("a"), running)).rejects.toMatchObject({ code: "PATH_OUTSIDE" });
  expect(other.read()).toBe('{"calls":{}}');
});

test("a writer that is cancelled while another one holds the file ends with the reason, and writes nothing", async () => {
  using file = folder();
  const taken = await takeFileLock(`${file.path}.lock`);
  if (taken.kind !== "held") throw new Error("The lock was taken.");
  const stop = new AbortController();
  const saving = saveStoredCall(file, call("a"), stop);
  stop.abort(new Error("stopped"));
  await expect(saving).rejects.toThrow("stopped");
  taken.lock.release();
  expect(readdirSync(file.inside)).toEqual([]);
});

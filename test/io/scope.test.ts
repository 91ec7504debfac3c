import { expect, test } from "vitest";
import { createScope } from "../../src/io/scope.ts";

test("a scope runs its disposers in reverse order, once, even if one throws", async () => {
  const scope = createScope();
  const ended: string[] = [];
  scope.onDispose(() => void ended.push(`first, aborted ${scope.signal.aborted}`));
  scope.onDispose(async () => {
    throw new Error("bad disposer");
  });
  scope.onDispose(async () => {
    ended.push("last");
  });
  const errors = await scope.dispose();
  await scope.dispose();
  expect({ ended, errors: errors.map((e) => e.message) }).toEqual({ ended: ["last", "first, aborted true"], errors: ["bad disposer"] });
});

test("a disposer that is added to an ended scope runs at once", async () => {
  const scope = createScope();
  await scope.dispose();
  let ended = false;
  scope.onDispose(() => {
    ended = true;
  });
  expect(ended).toBe(true);
});

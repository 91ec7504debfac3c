import { expect, test } from "vitest";
import { createCatalogMemo } from "../../../src/session/catalog/assemble-catalog.ts";
import { createCatalogView } from "../../../src/session/catalog/catalog-view.ts";
import { createTestEnvironment, openSession, sourceOf } from "../session-kit.ts";

test("a thousand sessions with equal views share one catalog", () => {
  const environment = createTestEnvironment(sourceOf("skill", "s", { name: "a" }, { name: "b" }));
  const catalogs = new Set(
    Array.from({ length: 1000 }, (_, index) => openSession(environment, { sessionId: `s${index}`, excludedTools: ["b"] }).catalog),
  );
  expect(catalogs.size).toBe(1);
});

test("other snapshots, views and sources have other catalogs", () => {
  const memo = createCatalogMemo();
  const source = sourceOf("skill", "s", { name: "a" });
  const view = createCatalogView({});
  const one = memo([source], view);
  expect(memo([source], createCatalogView({}))).toBe(one);
  expect(memo([{ ...source }], view)).toBe(one);
  expect(memo([{ ...source, tools: [...source.tools] }], view)).not.toBe(one);
  expect(memo([{ ...source, id: "t" }], view)).not.toBe(one);
  expect(memo([{ ...source, kind: "plugin" }], view)).not.toBe(one);
  expect(memo([source], createCatalogView({ excludedTools: ["a"] }))).not.toBe(one);
  expect(memo([source, source], view)).not.toBe(one);
});

test("new diagnostics of unchanged tools are reported", () => {
  const memo = createCatalogMemo();
  const source = sourceOf("skill", "s", { name: "a" });
  const view = createCatalogView({});
  memo([source], view);
  const diagnostics = [{ severity: "error" as const, code: "X", message: "x" }];
  expect(memo([{ ...source, diagnostics }], view).diagnostics).toEqual(diagnostics);
});

test("views that are no longer used do not accumulate", () => {
  const memo = createCatalogMemo();
  const source = sourceOf("skill", "s", { name: "a" });
  const first = memo([source], createCatalogView({ model: "m0" }));
  for (let index = 1; index <= 63; index++) memo([source], createCatalogView({ model: `m${index}` }));
  expect(memo([source], createCatalogView({ model: "m0" }))).toBe(first);
  for (let index = 100; index < 164; index++) memo([source], createCatalogView({ model: `m${index}` }));
  expect(memo([source], createCatalogView({ model: "m0" }))).not.toBe(first);
});

test("a catalog is released with its snapshot", async () => {
  const memo = createCatalogMemo();
  const view = createCatalogView({});
  const host = sourceOf("skill", "s", { name: "a" });
  const gone = new WeakRef(memo([host, sourceOf("external", "client", { name: "b" })], view));
  const collect = (globalThis as { gc?: () => void }).gc;
  for (let round = 0; round < 20 && gone.deref() !== undefined; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect?.();
  }
  expect(collect).toBeTypeOf("function");
  expect(gone.deref()).toBeUndefined();
  expect(memo([host], view).executables.has("a")).toBe(true);
});

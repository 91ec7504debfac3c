import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { DiskCache } from "../../src/io/disk-cache.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { registerScript } from "../../src/io/module-loader/source-positions.ts";
import { createScope } from "../../src/io/scope.ts";
import { put } from "../skills/kit.ts";
import { emptyFolder } from "./temp-folder.ts";

const collectGarbage = (globalThis as { gc?: () => void }).gc;

test("a module that was removed and comes back is kept on disk like one that is new", async () => {
  const kept: string[] = [];
  const cache = { get: () => undefined, set: (key: string) => void kept.push(key) } as unknown as DiskCache;
  const loader = createModuleLoader({ hostModules: {}, cache });
  const folder = join(emptyFolder(), "tools");
  const file = join(folder, "a.ts");
  const load = async (text: string): Promise<number> => {
    put(file, text);
    loader.invalidate([file]);
    await loader.load(file, createScope());
    return kept.length;
  };
  expect(await load("export const a: number = 1;")).toBe(1);
  expect(await load("export const a: number = 2;")).toBe(1);
  rmSync(folder, { recursive: true });
  loader.invalidate([file]);
  expect(await load("export const a: number = 3;")).toBe(2);
});

/** The address of a script that nothing refers to any longer, once garbage was collected and reported. */
async function addressAfterCollection(url: string): Promise<string> {
  for (let round = 0; round < 2; round++) {
    collectGarbage?.();
    await delay(20);
  }
  return addressOf(url);
}

function addressOf(url: string): string {
  return registerScript(url, { file: "a.ts", text: "", settings: {} as never }).address;
}

test("scripts of a file are counted until nothing refers to any of them", async () => {
  const url = pathToFileURL(join(emptyFolder(), "a.ts")).href;
  const held: unknown[] = [registerScript(url, { file: "a.ts", text: "", settings: {} as never })];
  expect(held).toEqual([expect.objectContaining({ address: url })]);
  expect(await addressAfterCollection(url)).toBe(`${url}#2`);
  expect(await addressAfterCollection(url)).toBe(`${url}#3`);
  held.pop();
  await expect.poll(() => addressAfterCollection(url)).toBe(url);
});

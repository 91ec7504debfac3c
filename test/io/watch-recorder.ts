import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { type PathChange, type TreeWatcher, type WatchOptions, watchTree } from "../../src/io/watch/watch-tree.ts";
import { patience } from "../slowness.ts";

export function tempFolder(files: Readonly<Record<string, string>> = {}, parent: string = tmpdir()): string {
  const folder = realpathSync(mkdtempSync(join(parent, "watch-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) put(join(folder, path), text);
  return folder;
}

export function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

export interface Recorder {
  readonly watcher: TreeWatcher;
  readonly batches: (readonly PathChange[])[];
  readonly problems: Diagnostic[];
  /** Waits until this change is among those since `clear`. */
  saw(kind: PathChange["kind"], path: string): Promise<void>;
  until(claim: string, isTrue: () => boolean): Promise<void>;
  all(): PathChange[];
  of(path: string): PathChange[];
  clear(): void;
}

const DEADLINE = patience(15_000);

/** Watches until the test ends, records all reports, and waits for events with a deadline. */
export async function record(options: Partial<WatchOptions> & { readonly roots: readonly string[] }): Promise<Recorder> {
  let batches: (readonly PathChange[])[] = [];
  const problems: Diagnostic[] = [];
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const check of [...waiting]) check();
  };
  const watcher = watchTree({
    ...options,
    onChange(changes, isEarly) {
      batches.push(changes);
      options.onChange?.(changes, isEarly);
      wake();
    },
    onProblem(problem) {
      problems.push(problem);
      wake();
    },
  });
  onTestFinished(() => watcher[Symbol.asyncDispose]());
  await watcher.ready;
  // Files created just before the start may be reported once: their times do not show whether they changed since.
  batches = [];

  const all = (): PathChange[] => batches.flat();
  const until = (claim: string, isTrue: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (!isTrue()) return;
        clearTimeout(deadline);
        waiting.delete(check);
        resolve();
      };
      const deadline = setTimeout(() => {
        waiting.delete(check);
        reject(new Error(`Never happened: ${claim}. Reported: ${JSON.stringify(all().slice(-30))}, ${JSON.stringify(problems)}`));
      }, DEADLINE);
      waiting.add(check);
      check();
    });
  return {
    watcher,
    get batches() {
      return batches;
    },
    problems,
    until,
    all,
    saw: (kind, path) => until(`${kind} ${path}`, () => all().some((change) => change.kind === kind && change.path === path)),
    of: (path) => all().filter((change) => change.path === path),
    clear: () => {
      batches = [];
    },
  };
}

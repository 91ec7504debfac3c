import type { SourceSettings } from "./transform-source.ts";

/** A text as it was compiled. */
export interface ModuleScript {
  readonly file: string;
  readonly text: string;
  readonly settings: SourceSettings;
  /** What stacks and debuggers show for its file. No other script of this process has the same. */
  readonly address: string;
}

/** How many replaced scripts are kept: calls that began before a reload may still throw. */
const maxReplaced = 32;

// Of the whole process, as stacks are: a frame does not say which loader ran its file.
const scripts = new Map<string, WeakRef<ModuleScript>>();
const counts = new Map<string, number>();
const replaced: ModuleScript[] = [];
const forgotten = new FinalizationRegistry<string>((address) => void scripts.delete(address));

/** Makes a script known. The first one of a URL has that for its address. Whoever holds the script keeps it known. */
export function registerScript(url: string, script: Omit<ModuleScript, "address">): ModuleScript {
  const count = (counts.get(url) ?? 0) + 1;
  counts.set(url, count);
  const registered = { ...script, address: count === 1 ? url : `${url}#${count}` };
  scripts.set(registered.address, new WeakRef(registered));
  forgotten.register(registered, registered.address);
  return registered;
}

/** Keeps a script known for a while though its module was replaced. */
export function keepReplaced(script: ModuleScript): void {
  replaced.push(script);
  if (replaced.length > maxReplaced) replaced.shift();
}

export function scriptAt(address: string): ModuleScript | undefined {
  return scripts.get(address)?.deref();
}

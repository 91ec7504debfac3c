import type { SourceSettings } from "./transform-source.ts";

/** The text of a module as it was compiled. */
export interface ModuleScript {
  readonly file: string;
  readonly text: string;
  readonly settings: SourceSettings;
  /** The location that stacks and debuggers show. Unique in this process. */
  readonly address: string;
}

/** The number of replaced scripts to keep, because calls that began before a reload may still throw. */
const maxReplaced = 32;

// Global to the process, because a stack frame does not identify the loader of its file.
const scripts = new Map<string, WeakRef<ModuleScript>>();
const counts = new Map<string, number>();
const replaced: ModuleScript[] = [];
const forgotten = new FinalizationRegistry<string>((address) => void scripts.delete(address));

/** The script with an address, as long as it is referenced. */
export function scriptAt(address: string): ModuleScript | undefined {
  return scripts.get(address)?.deref();
}

/** Registers a script while it is referenced. The first script of a URL has the URL as its address. */
export function registerScript(url: string, script: Omit<ModuleScript, "address">): ModuleScript {
  const count = (counts.get(url) ?? 0) + 1;
  counts.set(url, count);
  const registered = { ...script, address: count === 1 ? url : `${url}#${count}` };
  scripts.set(registered.address, new WeakRef(registered));
  forgotten.register(registered, registered.address);
  return registered;
}

/** Keeps the script of a replaced module registered for a while. */
export function keepReplaced(script: ModuleScript): void {
  replaced.push(script);
  if (replaced.length > maxReplaced) replaced.shift();
}

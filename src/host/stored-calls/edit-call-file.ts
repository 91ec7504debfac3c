import { setTimeout as delay } from "node:timers/promises";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { callNameFault, parseStoredCalls, type StoredCall } from "../../formats/calls/stored-calls.ts";
import { editJson } from "../../formats/text/edit-json.ts";
import { parseJson } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { type FileLock, takeFileLock } from "../../io/file-lock.ts";
import { readTextFile } from "../../io/read-bounded.ts";

export interface CallFile {
  readonly path: string;
  /** The folder that the file must be in, with links followed. */
  readonly inside: string;
}

/** `keepsRest`: a call that exists already keeps its expectations and its mark, and gets only another tool and arguments. */
export interface SaveOptions {
  readonly signal: AbortSignal;
  readonly keepsRest?: boolean;
}

/**
 * Adds a stored call to a file, or changes the one with its name. Members that are not known, other calls, their order and the format
 * stay. Writers wait for each other. @throws HostError `CALL_INVALID` for a call that could not be read again, `CALLS_UNREADABLE` for a
 * file that is not JSON, which is not changed, `PATH_OUTSIDE`; the signal's reason.
 */
export async function saveStoredCall(file: CallFile, call: StoredCall, { signal, keepsRest = false }: SaveOptions): Promise<void> {
  const members = membersOf(call);
  const fault = callNameFault(call.name) ?? faultOf(call.name, members);
  if (fault !== undefined) throw new HostError("CALL_INVALID", `The call was not stored. ${fault}`);
  await editFile(file, signal, (text, calls) => {
    if (!isRecord(calls[call.name])) return editJson(text, ["calls", call.name], definedOnly(members));
    let edited = text;
    const changed = keepsRest ? definedOnly(members) : members;
    for (const [key, value] of Object.entries(changed)) edited = editJson(edited, ["calls", call.name, key], value);
    return edited;
  });
}

/** Removes a stored call. Returns false if there is none with this name. @throws HostError as `saveStoredCall`. */
export async function removeStoredCall(file: CallFile, name: string, { signal }: Pick<SaveOptions, "signal">): Promise<boolean> {
  let isFound = false;
  await editFile(file, signal, (text, calls) => {
    isFound = Object.hasOwn(calls, name);
    return isFound ? editJson(text, ["calls", name], undefined) : text;
  });
  return isFound;
}

/** In the order of a new entry; undefined removes the member of an existing one. */
function membersOf({ tool, arguments: args, expect, isAutomatic }: StoredCall): Readonly<Record<string, unknown>> {
  return { tool, arguments: args, expect, automatic: isAutomatic ? true : undefined };
}

function definedOnly(members: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function faultOf(name: string, members: Readonly<Record<string, unknown>>): string | undefined {
  const text = JSON.stringify({ calls: { [name]: members } });
  // A warning, too: that of a key which is not read would lose an argument.
  return parseStoredCalls(text, "").diagnostics[0]?.message;
}

type Edit = (text: string, calls: Readonly<Record<string, unknown>>) => string;

async function editFile({ path, inside }: CallFile, signal: AbortSignal, edit: Edit): Promise<void> {
  const lock = await waitForLock(`${path}.lock`, signal);
  try {
    const text = readExisting(path);
    const edited = edit(text, callsOf(text, path));
    if (Buffer.byteLength(edited) > maxJsonBytes) {
      throw new HostError("CALL_INVALID", `The call was not stored: ${path} would be larger than ${maxJsonBytes} bytes.`);
    }
    if (edited !== text) await writeFileAtomic(path, edited, { inside });
  } finally {
    lock.release();
  }
}

/** Empty if there is no file. */
function readExisting(path: string): string {
  const read = readTextFile(path, maxJsonBytes);
  if (read.ok) return read.text;
  if (read.diagnostic.code === "FILE_MISSING") return "";
  throw new HostError("CALLS_UNREADABLE", read.diagnostic.message);
}

/** Only a file whose members are all known for certain is changed: one with a key twice would be changed at the wrong place. */
function callsOf(text: string, path: string): Readonly<Record<string, unknown>> {
  if (text.trim() === "") return {};
  const { document, faults } = parseJson(text);
  const root = document?.value;
  const calls = isRecord(root) ? (Object.hasOwn(root, "calls") ? root["calls"] : {}) : undefined;
  if (faults[0] === undefined && isRecord(calls)) return calls;
  const why = faults[0]?.message ?? '"calls" is not an object.';
  throw new HostError("CALLS_UNREADABLE", `${path} was not changed: ${why} Correct the file first.`);
}

async function waitForLock(path: string, signal: AbortSignal): Promise<FileLock> {
  for (;;) {
    signal.throwIfAborted();
    const taken = await takeFileLock(path);
    if (taken.kind === "held") return taken.lock;
    // Not cancelled itself: many writers may wait with one signal, and Node.js warns of more than ten listeners.
    await delay(10);
  }
}

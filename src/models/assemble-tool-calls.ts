import { isPlainRecord } from "../base/read-fields.ts";
import { copyJson } from "../tools/json-copy.ts";
import type { ModelToolCall, ReplayFields } from "./model.ts";
import { JsonProgress, parseArguments } from "./tool-arguments.ts";

export interface ToolInput {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: string;
}

interface OpenCall {
  id: string;
  wireId: string;
  name: string;
  text: string;
  readonly choice: number;
  index: number | undefined;
  readonly progress: JsonProgress;
  replay?: ReplayFields;
}

interface Fragment {
  readonly choice: number;
  readonly index: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly text: string;
  /** Whether other calls came in the same list. */
  readonly isOneOfSeveral: boolean;
  readonly replay: ReplayFields | undefined;
}

/**
 * Puts tool calls together from their fragments. By the protocol a fragment belongs to the call of its `index`; servers
 * also leave the index out, give all calls index 0, repeat id and name with every fragment, give each fragment an id of
 * its own, send one call under several indexes, send calls whole, and repeat ids between calls.
 */
export class ToolCallAssembly {
  readonly #calls: OpenCall[] = [];
  readonly #byIndex = new Map<string, OpenCall>();
  readonly #byId = new Map<string, OpenCall>();
  readonly #last = new Map<number, OpenCall>();
  readonly #takenIds: Set<string>;
  readonly #newId: () => string;

  /** `takenIds` are those of earlier calls in the conversation. */
  constructor(takenIds: Iterable<string>, newId: () => string) {
    this.#takenIds = new Set(takenIds);
    this.#newId = newId;
  }

  /** Takes in a `tool_calls` list of one choice; tells what it adds to the arguments of which call. */
  add(choice: number, list: unknown): readonly ToolInput[] {
    if (!Array.isArray(list)) return [];
    return list.filter(isPlainRecord).flatMap((entry) => this.#addFragment(toFragment(choice, entry, list.length > 1)));
  }

  /** The calls, in the order they began. What never got a name or arguments was none, nor was one that came again with nothing more. */
  finish(): readonly ModelToolCall[] {
    const known = new Set<string>();
    const isCall = ({ choice, wireId, name, text }: OpenCall): boolean => {
      const isAgain = wireId !== "" && known.has(key(choice, `${wireId} ${name}`));
      known.add(key(choice, `${wireId} ${name}`));
      return text.trim() !== "" || (name !== "" && !isAgain);
    };
    return this.#calls.filter(isCall).map(toToolCall);
  }

  #addFragment(fragment: Fragment): readonly ToolInput[] {
    const found = this.#find(fragment);
    const call = found === undefined || startsAnother(found, fragment) ? this.#begin(fragment) : found;
    this.#register(call, fragment);
    return this.#extend(call, fragment);
  }

  #find(fragment: Fragment): OpenCall | undefined {
    const { choice, index, id, name } = fragment;
    const last = this.#last.get(choice);
    const sameId = id === "" ? undefined : this.#byId.get(key(choice, id));
    if (sameId !== undefined) return sameId;
    const sameIndex = index === undefined ? undefined : this.#byIndex.get(key(choice, index));
    if (id !== "") {
      const near = sameIndex ?? (index === undefined && name === "" ? last : undefined);
      return near !== undefined && (near.wireId === "" || name === "") ? near : undefined;
    }
    if (sameIndex !== undefined) return sameIndex;
    if (name === "") return last;
    const isNext = index !== undefined || fragment.isOneOfSeveral || last === undefined || (last.name !== "" && last.name !== name);
    return isNext ? undefined : last;
  }

  #begin({ choice, index, id }: Fragment): OpenCall {
    const call = { id: this.#uniqueId(id), wireId: id, name: "", text: "", choice, index, progress: new JsonProgress() };
    this.#calls.push(call);
    return call;
  }

  #register(call: OpenCall, { choice, index, id }: Fragment): void {
    this.#last.set(choice, call);
    if (index !== undefined) this.#byIndex.set(key(choice, index), call);
    if (id === "") return;
    this.#byId.set(key(choice, id), call);
    if (call.wireId !== "") return;
    call.wireId = id;
    // Once input was told of under the made-up id, the call keeps that.
    if (call.text === "") call.id = this.#uniqueId(id);
  }

  #extend(call: OpenCall, { name, text, replay }: Fragment): readonly ToolInput[] {
    if (replay !== undefined) call.replay = { ...call.replay, ...replay };
    call.name = joinName(call, name);
    // A whole call that is sent again at the end adds nothing.
    if (text === "" || (name !== "" && text === call.text && call.progress.isComplete)) return [];
    call.text += text;
    call.progress.feed(text);
    return [{ toolCallId: call.id, toolName: call.name, input: text }];
  }

  #uniqueId(wireId: string): string {
    let id = isUsableId(wireId) ? wireId : this.#newId();
    while (this.#takenIds.has(id)) id = this.#newId();
    this.#takenIds.add(id);
    return id;
  }
}

const longestId = 10_000;
const longestName = 1_000;

// Some gateways carry signatures in ids, which makes them long.
function isUsableId(id: string): boolean {
  return id !== "" && id.length <= longestId && !/[\p{Cc}\p{Cs}]/u.test(id);
}

function startsAnother(call: OpenCall, { name, text, index }: Fragment): boolean {
  if (name === "") return false;
  const differs = call.name !== "" && call.name !== name;
  const isElsewhere = index !== undefined && call.index !== undefined && index !== call.index;
  if (isElsewhere && (differs || (call.progress.isComplete && text === ""))) return true;
  return call.progress.isComplete && ((text.trim() !== "" && text !== call.text) || differs);
}

// The protocol lets a name come in pieces; most servers that send it again send all of it again.
function joinName({ name, text }: OpenCall, more: string): string {
  if (more === "" || more === name || text !== "") return name === "" ? more.slice(0, longestName) : name;
  return (more.startsWith(name) ? more : name + more).slice(0, longestName);
}

function toFragment(choice: number, entry: Readonly<Record<string, unknown>>, isOneOfSeveral: boolean): Fragment {
  const { index, id, extra_content: extra } = entry;
  const called = isPlainRecord(entry["function"]) ? entry["function"] : entry;
  return {
    choice,
    index: typeof index === "number" ? index : undefined,
    id: typeof id === "string" || typeof id === "number" ? String(id) : "",
    name: typeof called["name"] === "string" ? called["name"] : "",
    text: textOf(called["arguments"]),
    isOneOfSeveral,
    replay: replayOf(extra),
  };
}

// Some servers parse the arguments themselves. What cannot be text of JSON must not pass for a call without arguments.
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  const copy = copyJson(value);
  return copy.ok ? JSON.stringify(copy.value) : `(unreadable: ${copy.reason})`;
}

// Signatures of the model's thoughts travel there; without them the next request is refused.
function replayOf(extra: unknown): ReplayFields | undefined {
  const copy = isPlainRecord(extra) ? copyJson(extra) : undefined;
  return copy?.ok === true ? { extra_content: copy.value } : undefined;
}

function key(choice: number, part: number | string): string {
  return `${choice} ${part}`;
}

function toToolCall({ id, name, text, replay }: OpenCall): ModelToolCall {
  return { id, name, argumentsText: text, ...parseArguments(text), ...(replay === undefined ? {} : { replay }) };
}

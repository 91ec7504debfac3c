import { isRecord } from "../base/json.ts";
import { copyJson } from "../tools/json-copy.ts";
import type { ModelToolCall, ReplayFields } from "./model.ts";

interface ParsedArguments {
  /** Frozen plain JSON, or the text when there is an `argumentsError`. */
  readonly arguments: unknown;
  readonly argumentsError?: string;
}

/**
 * Parses a model's text of tool arguments. An empty text or `null` means no arguments; JSON inside a JSON string is parsed once
 * more, because some models write that. Any other value stays text with an error.
 */
export function parseArguments(text: string): ParsedArguments {
  if (text.trim() === "") return { arguments: Object.freeze({}) };
  const parsed = parse(text);
  if (parsed === undefined) {
    const isCut = new JsonProgress().feed(text) === "open";
    return {
      arguments: text,
      argumentsError: isCut ? "The JSON of the arguments is incomplete." : "The arguments are not valid JSON.",
    };
  }
  const value = typeof parsed.value === "string" ? unpack(parsed.value) : parsed.value;
  if (value === null) return { arguments: Object.freeze({}) };
  if (!isRecord(value)) return { arguments: text, argumentsError: "The arguments are not a JSON object." };
  const copy = copyJson(value);
  if (copy.ok) return { arguments: copy.value };
  return {
    arguments: text,
    argumentsError: `The arguments are not valid: ${copy.path === "" ? "the object" : copy.path} ${copy.reason}.`,
  };
}

/** Tracks whether the text so far is an incomplete or complete JSON object, or something else. Linear over all chunks. */
class JsonProgress {
  #state: "empty" | "open" | "complete" | "other" = "empty";
  #depth = 0;
  #isInText = false;
  #isEscaped = false;

  get isComplete(): boolean {
    return this.#state === "complete";
  }

  feed(text: string): "empty" | "open" | "complete" | "other" {
    for (let index = 0; index < text.length && this.#state !== "other"; index++) {
      const code = text.charCodeAt(index);
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === backslash) this.#isEscaped = true;
        else if (code === quote) this.#isInText = false;
      } else if (code === quote && this.#depth > 0) this.#isInText = true;
      else if (code === openBrace || code === openBracket) {
        if (this.#depth === 0 && (this.#state !== "empty" || code !== openBrace)) this.#state = "other";
        else this.#state = "open";
        this.#depth += 1;
      } else if (code === closeBrace || code === closeBracket) {
        this.#depth -= 1;
        if (this.#depth < 0) this.#state = "other";
        else if (this.#depth === 0) this.#state = "complete";
      } else if (this.#depth === 0 && code > space) this.#state = "other";
    }
    return this.#state;
  }
}

const [quote, backslash, space] = [0x22, 0x5c, 0x20];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    // The caller reports it in its own words, because the messages of JSON.parse differ between versions of Node.js.
    return undefined;
  }
}

function unpack(text: string): unknown {
  const inner = parse(text)?.value;
  return isRecord(inner) ? inner : text;
}

interface ToolInput {
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
  /** Whether the same list contains other calls. */
  readonly isOneOfSeveral: boolean;
  readonly replay: ReplayFields | undefined;
}

/**
 * Assembles tool calls from fragments. In the protocol a fragment belongs to the call with its `index`; servers also omit the
 * index, use index 0 for all calls, repeat id and name in every fragment, use a new id for each fragment, send one call under
 * several indexes, send complete calls, and reuse ids.
 */
export class ToolCallAssembly {
  readonly #calls: OpenCall[] = [];
  readonly #byIndex = new Map<string, OpenCall>();
  readonly #byId = new Map<string, OpenCall>();
  readonly #last = new Map<number, OpenCall>();
  readonly #takenIds: Set<string>;
  readonly #newId: () => string;

  /** `takenIds` are the ids of earlier calls in the conversation. */
  constructor(takenIds: Iterable<string>, newId: () => string) {
    this.#takenIds = new Set(takenIds);
    this.#newId = newId;
  }

  /** Adds a `tool_calls` list of one choice; returns the added arguments per call. */
  add(choice: number, list: unknown): readonly ToolInput[] {
    if (!Array.isArray(list)) return [];
    return list.filter(isRecord).flatMap((entry) => {
      const fragment = toFragment(choice, entry, list.length > 1);
      const found = this.#find(fragment);
      const call = found === undefined || startsAnother(found, fragment) ? this.#begin(fragment) : found;
      this.#register(call, fragment);
      return this.#extend(call, fragment);
    });
  }

  /** The calls in order of their first fragment, without those that never received a name or arguments, and without repetitions. */
  finish(): readonly ModelToolCall[] {
    const known = new Set<string>();
    const isCall = ({ choice, wireId, name, text }: OpenCall): boolean => {
      const isAgain = wireId !== "" && known.has(key(choice, `${wireId} ${name}`));
      known.add(key(choice, `${wireId} ${name}`));
      return text.trim() !== "" || (name !== "" && !isAgain);
    };
    return this.#calls.filter(isCall).map(toToolCall);
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
    // After a part was emitted with a generated id, the call keeps that id.
    if (call.text === "") call.id = this.#uniqueId(id);
  }

  #extend(call: OpenCall, { name, text, replay }: Fragment): readonly ToolInput[] {
    if (replay !== undefined) call.replay = { ...call.replay, ...replay };
    call.name = joinName(call, name);
    // A complete call that is repeated at the end adds nothing.
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

// Some gateways put signatures into ids, which makes them long.
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

// In the protocol a name may be split; servers that repeat it usually repeat it completely.
function joinName({ name, text }: OpenCall, more: string): string {
  if (more === "" || more === name || text !== "") return name === "" ? more.slice(0, longestName) : name;
  return (more.startsWith(name) ? more : name + more).slice(0, longestName);
}

function toFragment(choice: number, entry: Readonly<Record<string, unknown>>, isOneOfSeveral: boolean): Fragment {
  const { index, id, extra_content: extra } = entry;
  const called = isRecord(entry["function"]) ? entry["function"] : entry;
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

// Some servers send parsed arguments. A value that cannot be JSON text must not count as a call without arguments.
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  const copy = copyJson(value);
  return copy.ok ? JSON.stringify(copy.value) : `(unreadable: ${copy.reason})`;
}

// It contains signatures of the model's reasoning, without which the next request is refused.
function replayOf(extra: unknown): ReplayFields | undefined {
  const copy = isRecord(extra) ? copyJson(extra) : undefined;
  return copy?.ok === true ? { extra_content: copy.value } : undefined;
}

function key(choice: number, part: number | string): string {
  return `${choice} ${part}`;
}

function toToolCall({ id, name, text, replay }: OpenCall): ModelToolCall {
  return { id, name, argumentsText: text, ...parseArguments(text), ...(replay === undefined ? {} : { replay }) };
}

import type { DatedVerdict } from "./identity-memory.ts";
import { listNames, type ServerLists } from "./server-lists.ts";

type Json = Readonly<Record<string, unknown>>;

const version = 1;

/** What is kept of a server between runs of the program: what it said of itself, and nothing of how it is reached. */
export interface CachedServer {
  readonly version: typeof version;
  /** Milliseconds since the epoch. */
  readonly savedAt: number;
  readonly verdict: DatedVerdict;
  readonly lists: Omit<ServerLists, "from" | "diagnostics">;
}

export function toCachedServer(lists: ServerLists, verdict: DatedVerdict, savedAt: number): CachedServer {
  const { from: _from, diagnostics: _diagnostics, ...kept } = lists;
  return { version, savedAt, verdict, lists: kept };
}

/** Undefined: this is not what was written. Whoever can write to the file says no more than a server could. */
export function parseCachedServer(text: string): CachedServer | undefined {
  const data = parseObject(text);
  if (data?.["version"] !== version || typeof data["savedAt"] !== "number") return undefined;
  const verdict = readVerdict(data["verdict"]);
  const lists = readLists(data["lists"]);
  return verdict && lists && { version, savedAt: data["savedAt"], verdict, lists };
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    // Not JSON: as good as no file.
    return undefined;
  }
}

function readVerdict(value: unknown): DatedVerdict | undefined {
  if (!isObject(value)) return undefined;
  const { era, protocolVersion, foundAt } = value;
  if ((era !== "modern" && era !== "legacy") || typeof protocolVersion !== "string" || typeof foundAt !== "number") return undefined;
  return { era, protocolVersion, foundAt };
}

function readLists(value: unknown): CachedServer["lists"] | undefined {
  if (!isObject(value) || !isObject(value["capabilities"])) return undefined;
  const { instructions, capabilities } = value;
  if (instructions !== undefined && typeof instructions !== "string") return undefined;
  const lists = listNames.map((name) => value[name]);
  if (!lists.every((list): list is Json[] => Array.isArray(list) && list.every(isObject))) return undefined;
  const [tools, prompts, resources, resourceTemplates, skills] = lists.map((list) => Object.freeze(list)) as readonly (readonly Json[])[];
  if (!tools || !prompts || !resources || !resourceTemplates || !skills) return undefined;
  const serverInfo = readServerInfo(value["serverInfo"]);
  return { capabilities, serverInfo, instructions, tools, prompts, resources, resourceTemplates, skills };
}

function readServerInfo(value: unknown): ServerLists["serverInfo"] {
  if (!isObject(value)) return undefined;
  const { name, version, title } = value;
  if (typeof name !== "string" || typeof version !== "string") return undefined;
  return { name, version, ...(typeof title === "string" && { title }) };
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

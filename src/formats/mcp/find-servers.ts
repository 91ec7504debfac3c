import type { JsonPath } from "../text/json-document.ts";
import { isJsonObject, type JsonComplain, type JsonObject } from "../text/json-fields.ts";
import { kindOf } from "./server-entry.ts";

interface ServerEntry {
  readonly name: string;
  readonly value: unknown;
  readonly path: JsonPath;
}

export interface ServerListing {
  readonly entries: readonly ServerEntry[];
}

const maxServers = 1_000;
const wrappers: readonly JsonPath[] = [["mcpServers"], ["mcp_servers"], ["servers"], ["mcp", "servers"], ["mcp"]];

/** Finds the servers in a configuration: under the keys that clients have for them, or as the whole of it. */
export function findServers(value: unknown, at: JsonPath | undefined, complain: JsonComplain): ServerListing {
  const path = at ?? wrappers.find((candidate) => isWrapper(valueAt(value, candidate), candidate)) ?? (isBareMap(value) ? [] : undefined);
  const found = path === undefined ? undefined : valueAt(value, path);
  if (path !== undefined && Array.isArray(found)) return limited(listEntries(found, path, complain), path, complain);
  if (path !== undefined && isJsonObject(found)) return limited(mapEntries(found, path), path, complain);
  explainAbsence(value, path, found, complain);
  return { entries: [] };
}

function valueAt(value: unknown, path: JsonPath): unknown {
  let at = value;
  for (const key of path)
    at = typeof at === "object" && at !== null && Object.hasOwn(at, key) ? (at as Record<string | number, unknown>)[key] : undefined;
  return at;
}

// "mcp" and "servers" are words that settings use for other things too.
function isWrapper(value: unknown, path: JsonPath): boolean {
  if (path.length === 1 && (path[0] === "mcpServers" || path[0] === "mcp_servers")) return value !== undefined;
  if (Array.isArray(value)) return path[0] === "servers" && value.some(isServerLike);
  return isJsonObject(value) && (Object.keys(value).length === 0 || Object.values(value).some(isServerLike));
}

function isBareMap(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const members = Object.entries(value).filter(([key]) => !isComment(key));
  return (
    members.every(([, member]) => isJsonObject(member)) && (members.length === 0 || members.some(([, member]) => isServerLike(member)))
  );
}

function isServerLike(value: unknown): boolean {
  return isJsonObject(value) && ["command", "url", "httpUrl", "serverUrl"].some((key) => Object.hasOwn(value, key));
}

function isComment(key: string): boolean {
  return /^(?:[$_]|\/\/|#)/.test(key);
}

function mapEntries(map: JsonObject, path: JsonPath): readonly ServerEntry[] {
  return Object.entries(map)
    .filter(([name, value]) => !isComment(name) || isJsonObject(value))
    .map(([name, value]) => ({ name, value, path: [...path, name] }));
}

function listEntries(list: readonly unknown[], path: JsonPath, complain: JsonComplain): readonly ServerEntry[] {
  const taken = new Set<string>();
  return list.flatMap((value, index) => {
    const own = isJsonObject(value) ? [value["id"], value["name"]].find((name) => typeof name === "string" && name !== "") : undefined;
    const name = (own as string | undefined) ?? String(index);
    const at = [...path, index];
    if (taken.has(name)) {
      complain(
        "warning",
        "MCP_NAME_TAKEN",
        `Two servers are called ${JSON.stringify(name.slice(0, 100))}; the first counts. Rename one.`,
        at,
      );
      return [];
    }
    taken.add(name);
    return [{ name, value, path: at }];
  });
}

function limited(entries: readonly ServerEntry[], path: JsonPath, complain: JsonComplain): ServerListing {
  if (entries.length <= maxServers) return { entries };
  const message = `There are ${entries.length} servers, and only the first ${maxServers} are read. Divide them among files.`;
  complain("error", "MCP_TOO_MANY", message, path);
  return { entries: entries.slice(0, maxServers) };
}

function explainAbsence(value: unknown, path: JsonPath | undefined, found: unknown, complain: JsonComplain): void {
  if (path === undefined) {
    const what = isJsonObject(value) ? "names no MCP servers" : `must be an object, not ${kindOf(value)}`;
    complain("error", "MCP_CONFIG_NONE", `This file ${what}. Write { "mcpServers": { "name": { … } } }.`, []);
  } else if (typeof found === "string") {
    complain("info", "MCP_CONFIG_ELSEWHERE", `The servers are in another file, which "${path.at(-1)}" names. Name that file.`, path);
  } else if (found !== undefined && found !== null) {
    complain("error", "MCP_CONFIG_TYPE", `"${path.at(-1)}" must be an object of servers by name, not ${kindOf(found)}.`, path);
  }
}

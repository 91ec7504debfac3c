import { sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { exactJson } from "../../base/untrusted-text.ts";
import { checkToolName, nearestToolName } from "../../tools/tool.ts";

/** A server and its own names for its tools, in its order. */
export interface ServerToolNames {
  readonly name: string;
  readonly tools: readonly string[];
}

export interface NamedTools {
  /** The names for models, by the server's name and its own name for the tool. */
  readonly names: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** Tools that a server lists twice. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Names the tools of servers for models: `<server>-<tool>`, with a hash of both at the end if that is not a legal name,
 * too long, or also the name of another pair (`a-b` with `c`, and `a` with `b-c`). Then each of the clashing tools gets
 * its hash, so that the order does not matter. Every other name depends only on its own server and tool. Pure.
 */
export function nameTools(servers: readonly ServerToolNames[]): NamedTools {
  const names = new Map<string, Map<string, string>>();
  const diagnostics: Diagnostic[] = [];
  const pairs: Pair[] = [];
  for (const { name: server, tools } of servers) {
    const own = names.get(server) ?? new Map<string, string>();
    names.set(server, own);
    for (const tool of tools) {
      if (own.has(tool)) diagnostics.push(listedTwice(server, tool));
      else pairs.push({ server, tool });
      own.set(tool, "");
    }
  }
  const chosen = chooseNames(pairs, modelNameOf);
  for (const [index, { server, tool }] of pairs.entries()) names.get(server)!.set(tool, chosen[index]!);
  return { names, diagnostics };
}

/**
 * Chooses a name for each of several things. A thing has several names, each less likely to clash; things with the same
 * name all take their next one, until every name is unique. The order of the things does not matter.
 */
export function chooseNames<T>(things: readonly T[], nameOf: (thing: T, level: number) => string | undefined): readonly string[] {
  const levels = things.map(() => 0);
  const names = things.map((thing, index) => nameFrom(thing, index));
  for (let clashing = clashesIn(names); clashing.length > 0; clashing = clashesIn(names)) {
    let isBetter = false;
    for (const index of clashing) {
      const next = nameOf(things[index]!, levels[index]! + 1);
      if (next === undefined) continue;
      isBetter = true;
      levels[index]!++;
      names[index] = next;
    }
    // Equal hashes of 128 bits: there is no further name to try.
    if (!isBetter) break;
  }
  return names;

  function nameFrom(thing: T, index: number): string {
    const name = nameOf(thing, 0);
    if (name !== undefined) return name;
    levels[index] = 1;
    return nameOf(thing, 1)!;
  }
}

/** The lengths of the hashes: one that is usually unique, and one that always is. */
export const hashDigits: readonly number[] = [8, 32];

/** A hash of parts. No two lists of parts have the same text. */
export function hashOfParts(parts: readonly string[], digits: number): string {
  return sha256(JSON.stringify(parts)).slice(0, digits);
}

interface Pair {
  readonly server: string;
  readonly tool: string;
}

const maxLength = 64;

/** Undefined at the first level: the plain name is not legal. */
function modelNameOf({ server, tool }: Pair, level: number): string | undefined {
  const plain = `${server}-${tool}`;
  if (level === 0) return checkToolName(plain).ok ? plain : undefined;
  const digits = hashDigits[level - 1];
  if (digits === undefined) return undefined;
  const stem = nearestToolName(plain)
    .slice(0, maxLength - digits - 1)
    .replace(/[-_]+$/, "");
  return `${stem}-${hashOfParts([server, tool], digits)}`;
}

function clashesIn(names: readonly string[]): readonly number[] {
  const first = new Map<string, number>();
  const clashing = new Set<number>();
  for (const [index, name] of names.entries()) {
    const other = first.get(name);
    if (other === undefined) first.set(name, index);
    else clashing.add(other).add(index);
  }
  return [...clashing];
}

function listedTwice(server: string, tool: string): Diagnostic {
  const shown = exactJson(tool.slice(0, 80));
  const message = `MCP server "${server}" has two tools named ${shown}; the first is used. Ask its author to rename one.`;
  return { severity: "warning", code: "MCP_TOOL_TWICE", source: server, message };
}

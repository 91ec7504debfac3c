import { sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { exactJson } from "../../base/hidden-characters.ts";
import { checkToolName, nearestToolName } from "../../tools/tool-name.ts";

/** A server and the names that it calls its tools by, in its order. */
export interface ServerToolNames {
  readonly name: string;
  readonly tools: readonly string[];
}

export interface NamedTools {
  /** By the server's name, then by its own name for the tool: what a model calls the tool by. */
  readonly names: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** Tools that are there twice. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Names the tools of servers for models: `<server>-<tool>`, with a hash of the two at the end wherever that is not legal,
 * too long, or what another pair would be called as well (`a-b` with `c`, and `a` with `b-c`). Then each of those that
 * fall together gets its hash, so that neither the order of servers nor who was there first makes a difference. Every
 * other name depends on its own server and tool alone. Pure.
 */
export function nameTools(servers: readonly ServerToolNames[]): NamedTools {
  const names = new Map<string, Map<string, string>>();
  const diagnostics: Diagnostic[] = [];
  const pairs: Pair[] = [];
  for (const { name: server, tools } of servers) {
    const own = names.get(server) ?? new Map<string, string>();
    names.set(server, own);
    for (const tool of tools) {
      if (own.has(tool)) diagnostics.push(toldTwice(server, tool));
      else pairs.push({ server, tool });
      own.set(tool, "");
    }
  }
  const chosen = chooseNames(pairs, modelNameOf);
  for (const [index, { server, tool }] of pairs.entries()) names.get(server)!.set(tool, chosen[index]!);
  return { names, diagnostics };
}

/**
 * A name for each of several things. A thing has a row of names, each less likely to be another's; of those that would
 * have the same one, all take their next, until every name is one thing's. The order of the things makes no difference.
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
    // Hashes of 128 bits that are the same: there is nothing more to try.
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

/** Digits of a hash that tell some things apart, and that tell all things apart. */
export const hashDigits: readonly number[] = [8, 32];

/** Digits of a hash of parts, none of which can be written so as to read like the next one. */
export function hashOfParts(parts: readonly string[], digits: number): string {
  return sha256(JSON.stringify(parts)).slice(0, digits);
}

interface Pair {
  readonly server: string;
  readonly tool: string;
}

const maxLength = 64;

/** Undefined at the first level: the plain name cannot be used. */
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

function toldTwice(server: string, tool: string): Diagnostic {
  const shown = exactJson(tool.slice(0, 80));
  const message = `MCP server "${server}" has two tools named ${shown}; the first is used. Ask its author to rename one.`;
  return { severity: "warning", code: "MCP_TOOL_TWICE", source: server, message };
}

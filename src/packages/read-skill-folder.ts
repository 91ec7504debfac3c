import { basename, extname } from "node:path";
import { createStaticRunner } from "../advice/static-runner.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { isRecord } from "../base/json.ts";
import { packageVersion } from "../base/package-root.ts";
import { findTools, type WrittenTool } from "../formats/modules/module-exports.ts";
import { hasSpread, parseModule, propertyOf, staticValue } from "../formats/modules/module-source.ts";
import type { SkillPermissions } from "../formats/skills/skill-permissions.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import { createModuleLoader, type OwnedModuleLoader } from "../io/module-loader/create-module-loader.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { loadSkill } from "../skills/load/load-skill.ts";
import { createModuleRunner } from "../skills/load/stage-tool.ts";
import { moduleExtensions } from "../skills/load/tool-entries.ts";
import { providedModules } from "../skills/load/tool-module.ts";
import type { Skill } from "../skills/skill.ts";
import { FolderListing } from "../skills/store/folder-listing.ts";
import type { Tool, ToolDefinition } from "../tools/tool.ts";

/** A tool in a lock file. */
export interface LockedTool {
  /** The `tool.signature`; absent if the definition is computed and nothing was run. */
  readonly signature?: string;
  /** What a model sees of the tool, as lines for reviews. */
  readonly definition: readonly string[];
  /** The program or URL that it uses, with the variables that it sends. Absent for a module. */
  readonly uses?: readonly string[];
}

/** A skill folder read without using it. */
export interface ReadSkill {
  readonly name: string;
  readonly description: string;
  readonly version?: string;
  readonly tools: Readonly<Record<string, LockedTool>>;
  /** Its MCP servers, each as command line or URL. */
  readonly servers: Readonly<Record<string, string>>;
  readonly requires: Readonly<Record<string, string>>;
  readonly engines: Readonly<Record<string, string>>;
  /** The permissions that its manifest declares for its tools. */
  readonly permissions?: SkillPermissions;
  readonly diagnostics: readonly Diagnostic[];
}

export interface SkillReader extends Disposable {
  /** Reads a skill folder; returns only diagnostics when it contains no loadable skill. */
  read(folder: string, signal: AbortSignal): Promise<ReadSkill | { readonly diagnostics: readonly Diagnostic[] }>;
}

/** Creates a reader of skills. Unless `runs` is true, no code is run, and tools with computed definitions stay unknown. */
export function createSkillReader({ runs }: { readonly runs: boolean }): SkillReader {
  const loader = createModuleLoader({
    ...providedModules,
    guardExit: true,
  });
  return {
    read: (folder, signal) => read(folder, { loader, runs, signal }),
    [Symbol.dispose]: () => loader[Symbol.dispose](),
  };
}

interface Reading {
  readonly loader: OwnedModuleLoader;
  readonly runs: boolean;
  readonly signal: AbortSignal;
}

async function read(folder: string, { loader, runs, signal }: Reading): ReturnType<SkillReader["read"]> {
  const runner = runs ? createModuleRunner(loader) : createStaticRunner(loader, parse);
  const staged = await loadSkill(folder, undefined, new Set(), {
    loader,
    runners: [runner],
    hostVersion: packageVersion,
    importTimeout: 10_000,
    signal,
    listing: new FolderListing(folder),
    seen: () => {},
  });
  if (staged.kind === "absent") return { diagnostics: [] };
  if (staged.kind === "rejected") return { diagnostics: staged.diagnostics };
  const { skill, units, diagnostics } = staged.generation;
  await Promise.all(units.map((unit) => unit.retire()));
  return {
    name: skill.name,
    description: skill.description,
    ...(skill.version !== undefined && { version: skill.version }),
    tools: lockedTools(skill, runs),
    ...(skill.permissions && { permissions: skill.permissions }),
    servers: Object.fromEntries(sorted(Object.entries(skill.mcpServers).map(([name, server]) => [name, serverLine(server)]))),
    requires: Object.fromEntries(sorted(Object.entries(skill.requires))),
    engines: Object.fromEntries(sorted(Object.entries(skill.engines))),
    diagnostics: diagnostics.map((diagnostic) => ({ source: basename(folder), ...diagnostic })),
  };
}

function parse(file: string): ReturnType<typeof parseModule> {
  const text = readTextFile(file, maxDocumentBytes);
  return text.ok ? parseModule(file, text.text) : undefined;
}

function lockedTools({ tools, uses }: Pick<Skill, "tools" | "uses">, runs: boolean): Readonly<Record<string, LockedTool>> {
  const written = new Map<string, ReadonlySet<string>>();
  const isKnown = ({ definition, origin }: Tool): boolean => {
    const { file } = origin;
    if (runs || file === undefined || !moduleExtensions.includes(extname(file))) return true;
    if (!written.has(file)) written.set(file, toolsWrittenIn(file));
    return written.get(file)!.has(definition.name);
  };
  const locked = tools.map((tool): [string, LockedTool] => {
    const known = isKnown(tool);
    const used = uses.get(tool.definition.name);
    const definition = describeContract(tool.definition, known);
    return [tool.definition.name, { ...(known && { signature: tool.signature }), definition, ...(used && { uses: used }) }];
  });
  return Object.fromEntries(sorted(locked));
}

function sorted<T>(entries: [string, T][]): [string, T][] {
  return entries.sort(([a], [b]) => (a < b ? -1 : 1));
}

function serverLine(server: unknown): string {
  const { command, args, url } = (typeof server === "object" && server !== null ? server : {}) as Record<string, unknown>;
  if (typeof url === "string") return url;
  const parts = [command, ...(Array.isArray(args) ? args : [])].filter((part) => typeof part === "string");
  return parts.length > 0 ? parts.join(" ") : JSON.stringify(server);
}

/**
 * Finds the tools of a module that are literal in its text, so that what a model will see is known without running it. Other tools are
 * computed.
 */
function toolsWrittenIn(file: string): ReadonlySet<string> {
  const read = readTextFile(file, maxDocumentBytes);
  const module = read.ok ? parseModule(file, read.text) : undefined;
  if (module === undefined) return new Set();
  const isExact = ({ definition }: WrittenTool): boolean => {
    if (definition === undefined || hasSpread(definition)) return false;
    return contract.every((key) => {
      const property = propertyOf(definition, key);
      return property === undefined || staticValue(property.value as Parameters<typeof staticValue>[0], module).isKnown;
    });
  };
  return new Set(findTools(module).flatMap((tool) => (tool.name !== undefined && isExact(tool) ? [tool.name] : [])));
}

/** The fields of a tool's signature. */
const contract = ["name", "title", "description", "parameters", "inputSchema", "overridesBuiltInTool", "skipPermission"];

/** What a model sees of a tool, as lines for reviews: one fact per line, in a fixed order. */
function describeContract(definition: ToolDefinition, isKnown = true): readonly string[] {
  if (!isKnown) return ["(computed: known when its module runs)"];
  const { title, description, parameters, overridesBuiltInTool, skipPermission } = definition;
  return [
    ...(title === undefined ? [] : [`title: ${title}`]),
    ...(description === undefined ? [] : [`description: ${description}`]),
    ...(overridesBuiltInTool === true ? ["replaces a built-in tool"] : []),
    ...(skipPermission === true ? ["runs without permission requests"] : []),
    ...schemaLines(parameters, "parameters", 0),
  ];
}

const deepest = 8;

function schemaLines(schema: unknown, path: string, depth: number): readonly string[] {
  if (schema === undefined) return [];
  if (!isRecord(schema) || depth > deepest) return [`${path}: ${JSON.stringify(schema)}`];
  const { properties, items, required, description, type, ...rest } = schema;
  const facts = Object.entries(rest)
    .filter(([key]) => key !== "$schema")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key} ${JSON.stringify(value)}`);
  const needed = Array.isArray(required) && required.length > 0 ? [`required ${required.toSorted().join(", ")}`] : [];
  const head = [typeof type === "string" ? type : type === undefined ? undefined : JSON.stringify(type), ...needed, ...facts];
  const about = typeof description === "string" ? [`— ${description}`] : [];
  const own = `${path}: ${[head.filter((part) => part !== undefined).join("; "), ...about].join(" ")}`.trimEnd();
  const members = isRecord(properties) ? Object.entries(properties).sort(([a], [b]) => (a < b ? -1 : 1)) : [];
  return [
    own,
    ...members.flatMap(([key, value]) => schemaLines(value, `${path}.${key}`, depth + 1)),
    ...schemaLines(items, `${path}[]`, depth + 1),
  ];
}

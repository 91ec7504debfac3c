import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { ToolKind, ToolOrigin } from "../../tools/tool.ts";
import { kindsByRank } from "../catalog/tool-catalog.ts";

/** What one source provides. Each list is read only when it is needed. */
export interface PromptAndResourceSource {
  readonly kind: ToolKind;
  /** For people. */
  readonly id: string;
  readonly prompts?: readonly Prompt[] | undefined;
  readonly resources?: readonly Resource[] | undefined;
  readonly resourceTemplates?: readonly ResourceTemplate[] | undefined;
}

/** The prompts and resources of a session. Each list is made when it is first read, and then stays as it is. */
export interface PromptsAndResources {
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  /** What lost its name or address to something else, of the lists that were read. */
  readonly diagnostics: readonly Diagnostic[];
  findPrompt(name: string): Prompt | undefined;
  /** The resource of this address, else the template that it fits; of several the one that would win a clash. */
  findResource(uri: string): Resource | ResourceTemplate | undefined;
  /** The template that is written like this. */
  findTemplate(uriTemplate: string): ResourceTemplate | undefined;
  /** What one MCP server offers, also where something else has won its name or address. */
  ofServer(serverName: string): PromptsAndResources;
}

/**
 * Combines the prompts and resources of several sources. If two have the same name or address, the later kind wins (built-in, MCP
 * server, skill, plugin, client), within a kind that of the later source. Pure: equal sources give equal offers.
 */
export function assemblePromptsAndResources(sources: readonly PromptAndResourceSource[]): PromptsAndResources {
  const ordered = kindsByRank.flatMap((kind) => sources.filter((source) => source.kind === kind));
  return new AssembledOffers(ordered);
}

class AssembledOffers implements PromptsAndResources {
  readonly #sources: readonly PromptAndResourceSource[];
  #prompts: Chosen<Prompt> | undefined;
  #resources: Chosen<Resource> | undefined;
  #templates: Chosen<ResourceTemplate> | undefined;

  constructor(sources: readonly PromptAndResourceSource[]) {
    this.#sources = sources;
  }

  get prompts(): readonly Prompt[] {
    return this.#chosenPrompts().items;
  }

  get resources(): readonly Resource[] {
    return this.#chosenResources().items;
  }

  get resourceTemplates(): readonly ResourceTemplate[] {
    return this.#chosenTemplates().items;
  }

  get diagnostics(): readonly Diagnostic[] {
    return [this.#prompts, this.#resources, this.#templates].flatMap((chosen) => chosen?.clashes ?? []);
  }

  findPrompt(name: string): Prompt | undefined {
    return this.#chosenPrompts().byKey.get(name);
  }

  findResource(uri: string): Resource | ResourceTemplate | undefined {
    const { byKey } = this.#chosenResources();
    return byKey.get(uri) ?? byKey.get(plainAddress(uri)) ?? this.resourceTemplates.findLast((template) => template.match(uri));
  }

  findTemplate(uriTemplate: string): ResourceTemplate | undefined {
    return this.#chosenTemplates().byKey.get(uriTemplate);
  }

  ofServer(serverName: string): PromptsAndResources {
    const isOf = ({ origin }: Item): boolean => origin.kind === "mcp" && origin.source === serverName;
    return new AssembledOffers(
      this.#sources.map((source) => ({
        ...source,
        prompts: source.prompts?.filter(isOf),
        resources: source.resources?.filter(isOf),
        resourceTemplates: source.resourceTemplates?.filter(isOf),
      })),
    );
  }

  #chosenPrompts(): Chosen<Prompt> {
    this.#prompts ??= choose(
      this.#sources.flatMap(({ prompts = [] }) => prompts),
      ({ definition }) => definition.name,
      "PROMPT_NAME_CLASH",
    );
    return this.#prompts;
  }

  #chosenResources(): Chosen<Resource> {
    this.#resources ??= choose(
      this.#sources.flatMap(({ resources = [] }) => resources),
      ({ definition }) => definition.uri,
      "RESOURCE_CLASH",
    );
    return this.#resources;
  }

  #chosenTemplates(): Chosen<ResourceTemplate> {
    this.#templates ??= choose(
      this.#sources.flatMap(({ resourceTemplates = [] }) => resourceTemplates),
      ({ definition }) => definition.uriTemplate,
      "RESOURCE_CLASH",
    );
    return this.#templates;
  }
}

interface Chosen<T> {
  readonly items: readonly T[];
  readonly byKey: ReadonlyMap<string, T>;
  readonly clashes: readonly Diagnostic[];
}

interface Item {
  readonly origin: ToolOrigin;
  readonly revision: string;
}

/** The later of two has the key, at the place of the first. */
function choose<T extends Item>(items: readonly T[], keyOf: (item: T) => string, code: string): Chosen<T> {
  const byKey = new Map<string, T>();
  const clashes: Diagnostic[] = [];
  for (const item of items) {
    const key = keyOf(item);
    const before = byKey.get(key);
    if (before !== undefined && before.revision !== item.revision) clashes.push(clash(code, key, item.origin, before.origin));
    byKey.set(key, item);
  }
  return { items: Object.freeze([...byKey.values()]), byKey, clashes };
}

function clash(code: string, key: string, winner: ToolOrigin, loser: ToolOrigin): Diagnostic {
  const [has, lost] = [winner, loser].map(({ kind, source }) => `the ${kind} "${source}"`);
  const message = `Both ${has} and ${lost} offer "${key}"; the one of ${has} is used. Rename one of them.`;
  return { severity: "warning", code, ...(loser.file !== undefined && { file: loser.file }), source: loser.source, message };
}

/** An address with its parts encoded in the one way that this host writes them. */
function plainAddress(uri: string): string {
  const [, scheme, rest] = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/)([^?#]*)$/.exec(uri) ?? [];
  if (scheme === undefined || rest === undefined) return uri;
  try {
    const parts = rest.split("/").map((part) => encodeURIComponent(decodeURIComponent(part)));
    return scheme.toLowerCase() + parts.join("/");
  } catch {
    // A percent sign that begins no character, or half of one.
    return uri;
  }
}

/** A list made of another one: the same array, of the same objects, for as long as what it says is the same. */
export class StableList<Item extends object, Definition extends object> {
  readonly #definitionOf: (item: Item) => Definition;
  readonly #contractOf: (definition: Definition) => unknown;
  #of: readonly Item[] | undefined;
  #definitions: readonly Definition[] = Object.freeze([]);
  #version = 0;

  /** `contractOf`: the part of a definition whose change makes a new list; other changes are not announced. */
  constructor(definitionOf: (item: Item) => Definition, contractOf: (definition: Definition) => unknown = (definition) => definition) {
    this.#definitionOf = definitionOf;
    this.#contractOf = contractOf;
  }

  /** Whether it was ever read. */
  get isKnown(): boolean {
    return this.#of !== undefined;
  }

  /** Rises when the list becomes another one. */
  get version(): number {
    return this.#version;
  }

  read(items: readonly Item[]): readonly Definition[] {
    if (items === this.#of) return this.#definitions;
    const before = this.#definitions;
    const now = items.map(this.#definitionOf);
    const isFirst = this.#of === undefined;
    this.#of = items;
    if (!isFirst && areEqual(before, now, (definition) => definition)) return before;
    if (!isFirst && !areEqual(before, now, this.#contractOf)) this.#version++;
    this.#definitions = Object.freeze(now);
    return this.#definitions;
  }
}

function areEqual<T>(before: readonly T[], now: readonly T[], partOf: (definition: T) => unknown): boolean {
  return (
    before.length === now.length &&
    now.every((item, index) => item === before[index] || JSON.stringify(partOf(item)) === JSON.stringify(partOf(before[index] as T)))
  );
}

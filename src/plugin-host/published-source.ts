import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import type { PromptAndResourceSource } from "../session/prompts-resources/prompts-and-resources.ts";
import type { CallsInFlight } from "../skills/load/calls-in-flight.ts";
import { withOrigin } from "../tools/create/create-tool.ts";
import type { Tool } from "../tools/tool.ts";
import type { SkillEntry, SourceSnapshot, ToolSource } from "../tools/tool-source.ts";
import { attributeFeatures, countCallsOf, originOf, type PluginPlace } from "./contributions.ts";

/**
 * A plugin's tool source as sessions see it. Its tools have the plugin as their origin, whatever they claim, and when a snapshot
 * cannot be read, the previous one stays in use. The same snapshot is converted once.
 */
export class PublishedSource {
  readonly id: string;
  readonly source: ToolSource;
  readonly #place: PluginPlace;
  readonly #calls: CallsInFlight | undefined;
  readonly #tools = new WeakMap<Tool, Tool>();
  #read: SourceSnapshot | undefined;
  #published: SourceSnapshot = Object.freeze({ tools: [], skills: [], diagnostics: [] });

  /** `calls` counts the calls of its tools. */
  constructor(source: ToolSource, place: PluginPlace, calls?: CallsInFlight) {
    this.id = `${place.name}/${source.id}`;
    this.source = source;
    this.#place = place;
    this.#calls = calls;
  }

  get snapshot(): SourceSnapshot {
    try {
      const snapshot = this.source.snapshot;
      if (snapshot !== this.#read) {
        this.#published = this.#publish(snapshot);
        this.#read = snapshot;
      }
    } catch (error) {
      this.#keepPrevious(error);
    }
    return this.#published;
  }

  #publish(snapshot: SourceSnapshot): SourceSnapshot {
    const { tools, skills, diagnostics } = snapshot;
    const usable: Tool[] = [];
    const found: Diagnostic[] = [...diagnostics];
    for (const tool of tools) {
      if (isTool(tool)) usable.push(this.#own(tool));
      else found.push(this.#problem("PLUGIN_TOOL_INVALID", "contains something that is not a tool. Create its tools with api.createTool."));
    }
    return Object.freeze({
      tools: Object.freeze(usable),
      skills: Object.freeze([...skills]) as readonly SkillEntry[],
      ...attributeFeatures(snapshot, (nativeName) => originOf(this.#place, nativeName)),
      diagnostics: Object.freeze(found),
    });
  }

  #keepPrevious(error: unknown): void {
    const problem = this.#problem("PLUGIN_SOURCE", `cannot be read, so its previous tools stay in use: ${errorMessage(error)}`);
    if (this.#published.diagnostics.some(({ message }) => message === problem.message)) return;
    this.#published = Object.freeze({ ...this.#published, diagnostics: Object.freeze([...this.#published.diagnostics, problem]) });
  }

  #own(tool: Tool): Tool {
    const known = this.#tools.get(tool);
    if (known !== undefined) return known;
    const owned = withOrigin(tool, originOf(this.#place, tool.origin?.nativeName ?? tool.definition.name));
    const counted = this.#calls === undefined ? owned : countCallsOf(owned, this.#calls);
    this.#tools.set(tool, counted);
    return counted;
  }

  #problem(code: string, what: string): Diagnostic {
    return {
      severity: "error",
      code,
      source: this.#place.name,
      message: `The tool source "${this.source.id}" of plugin "${this.#place.name}" ${what}`,
    };
  }
}

/** The prompts and resources of a plugin's sources. */
export function offersOf({ published, place }: Pick<PluginTools, "published" | "place">): readonly PromptAndResourceSource[] {
  const kind = place.isBundled ? "builtin" : "plugin";
  return published.map(({ id, snapshot: { prompts, resources, resourceTemplates } }) => ({
    kind,
    id,
    prompts,
    resources,
    resourceTemplates,
  }));
}

/** The tools of a plugin for catalogs: its own, then those of its sources. */
export function sourcesOf({ tools, published, place }: PluginTools): readonly CatalogSource[] {
  const kind = place.isBundled ? "builtin" : "plugin";
  const own: CatalogSource[] = tools.length === 0 ? [] : [{ kind, id: place.name, tools }];
  for (const { id, snapshot } of published) own.push({ kind, id, tools: snapshot.tools, diagnostics: snapshot.diagnostics });
  return own;
}

export interface PluginTools {
  readonly tools: readonly Tool[];
  readonly published: readonly PublishedSource[];
  readonly place: PluginPlace;
}

function isTool(value: unknown): value is Tool {
  if (typeof value !== "object" || value === null) return false;
  const { definition, validate, execute, signature } = value as Partial<Tool>;
  return (
    typeof definition?.name === "string" && typeof validate === "function" && typeof execute === "function" && typeof signature === "string"
  );
}

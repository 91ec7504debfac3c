import type { ToolDefinition } from "../../tools/tool.ts";
import type { SessionEvent } from "../history/events.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

/** The tools that the model of a session's own conversation was shown, by its events. */
export function toolsDiscoveredIn(events: readonly SessionEvent[]): readonly string[] {
  return events.flatMap(({ type, data: { toolNames }, agentId }) => {
    if (type !== searchActivated || agentId !== undefined || !Array.isArray(toolNames)) return [];
    return toolNames.filter((name): name is string => typeof name === "string");
  });
}

/** What the model of one conversation has been shown of the tools that are deferred. */
export class DiscoveredTools {
  readonly #shown = new Set<string>();
  #of: ToolCatalog | undefined;
  #advertised: readonly ToolDefinition[] = [];

  /** What a catalog advertises, and after it what was shown, in the order in which it was: so a prompt cache holds. */
  advertised(catalog: ToolCatalog): readonly ToolDefinition[] {
    if (this.#shown.size === 0 || catalog.deferred.size === 0) return catalog.advertised;
    if (this.#of === catalog) return this.#advertised;
    this.#of = catalog;
    // A name may be gone for a while, or be advertised to all by now.
    const found = [...this.#shown].filter((name) => catalog.deferred.has(name));
    this.#advertised = Object.freeze([...catalog.advertised, ...found.map((name) => catalog.executables.get(name)!.definition)]);
    return this.#advertised;
  }

  /** Shows tools from now on. Returns the names that were deferred and not shown before; ignores the others. */
  show({ deferred }: ToolCatalog, names: readonly unknown[]): readonly string[] {
    const added: string[] = [];
    for (const name of names) {
      if (typeof name !== "string" || !deferred.has(name) || this.#shown.has(name)) continue;
      this.#shown.add(name);
      added.push(name);
    }
    if (added.length > 0) this.#of = undefined;
    return added;
  }

  /** Takes over what the same conversation was shown in an earlier process, oldest first. */
  restore(names: readonly string[]): void {
    for (const name of names) this.#shown.add(name);
    this.#of = undefined;
  }
}

export const searchActivated = "tool_search.activated";

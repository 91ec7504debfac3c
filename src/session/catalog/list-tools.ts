import type { JsonSchema, ToolKind } from "../../tools/tool.ts";
import type { ToolCatalog } from "./tool-catalog.ts";
import { namespacedName } from "./tool-filter.ts";

/** A tool of a session, described for people and programs. */
export interface ListedTool {
  readonly name: string;
  /** `server/tool`, `skill/tool` or `plugin/tool`. */
  readonly namespacedName?: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  readonly source: { readonly kind: ToolKind; readonly name: string };
  /** Callable, but a model must search for it first. */
  readonly deferred: boolean;
  readonly signature: string;
}

/** The callable tools of a catalog, in its order. */
export function listTools({ executables, deferred }: ToolCatalog): readonly ListedTool[] {
  return Array.from(executables.values(), (tool) => {
    const { name, description, parameters } = tool.definition;
    const path = namespacedName(tool);
    return {
      name,
      ...(path !== undefined && { namespacedName: path }),
      ...(description !== undefined && { description }),
      ...(parameters !== undefined && { parameters }),
      source: { kind: tool.origin.kind, name: tool.origin.source },
      deferred: deferred.has(name),
      signature: tool.signature,
    };
  });
}

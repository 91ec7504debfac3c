import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

/** The catalog of a conversation that nobody listens to: made whenever it is read. */
export interface LiveCatalog {
  /** The catalog of now; where it cannot be made, the one before, and without one before it throws. */
  readonly current: ToolCatalog;
  /** Whether a name was callable once and is not any more. */
  hasVanished(name: string): boolean;
}

/** `assemble` gives the same object while nothing has changed, so reading costs little. */
export function createLiveCatalog(assemble: () => ToolCatalog, log: Logger): LiveCatalog {
  let catalog: ToolCatalog | undefined;
  const seen = new Set<string>();
  const refresh = (): ToolCatalog => {
    const next = assemble();
    if (next !== catalog) for (const name of next.executables.keys()) seen.add(name);
    return next;
  };
  return {
    get current() {
      try {
        catalog = refresh();
      } catch (error) {
        log.error("The tools of a sub-agent could not be refreshed, those from before stay.", { error: toError(error) });
        if (catalog === undefined) throw error;
      }
      return catalog;
    },
    hasVanished: (name) => seen.has(name) && catalog?.executables.has(name) !== true,
  };
}

import { errorMessage } from "../../base/errors.ts";
import type { Place } from "./error-position.ts";
import { ModuleError } from "./module-error.ts";

/** Finds a stack's first place in a module, and the stack in terms of the sources. */
export type Locate = (stack: string) => { readonly stack: string; readonly place: Place | undefined };

/** Whatever went wrong while `entry` was loaded, as a `ModuleError` that knows which paths may mend it. */
export function toModuleError(thrown: unknown, entry: string, files: Iterable<string>, locate: Locate): ModuleError {
  if (thrown instanceof ModuleError) return thrown.withFiles(files);
  const place = relocate(thrown, locate);
  const where = place ? `${place.file}:${place.line}:${place.column}` : entry;
  const message = `${where} threw while ${place === undefined || place.file === entry ? "it" : entry} was loaded: ${errorMessage(thrown)}`;
  return new ModuleError("MODULE_THREW", message, { file: place?.file ?? entry, position: place, files, cause: thrown });
}

// Reading the stack also has V8 turn its frames into text; until then they keep the module's functions alive.
function relocate(thrown: unknown, locate: Locate): Place | undefined {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== "string") return undefined;
    const { stack, place } = locate(thrown.stack);
    thrown.stack = stack;
    return place;
  } catch {
    // A frozen error, or one with hostile getters: its message has to do.
    return undefined;
  }
}

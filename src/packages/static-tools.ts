import { parseModule } from "../formats/modules/module-source.ts";
import { findTools, type WrittenTool } from "../formats/modules/module-tools.ts";
import { hasSpread, propertyOf, staticValue } from "../formats/modules/static-value.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import { readTextFile } from "../io/read-bounded.ts";

/**
 * Which tools of a module are written out in it, word for word, so that what a model will see of them is known without
 * running it. The rest of its tools are computed.
 */
export function toolsWrittenIn(file: string): ReadonlySet<string> {
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

/** What a tool's signature is made of. */
const contract = ["name", "title", "description", "parameters", "inputSchema", "overridesBuiltInTool", "skipPermission"];

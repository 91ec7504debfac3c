import { importPlace } from "../place-in-file.ts";
import { ModuleError } from "./module-error.ts";
import type { ModuleRecord } from "./module-record.ts";
import { isTypeScript } from "./transform-source.ts";

/**
 * JavaScript fails to link when a name is missing. A name that TypeScript only passes on may have been a type.
 * @throws ModuleError `MODULE_EXPORT_MISSING`
 */
export function checkNames(
  importer: ModuleRecord,
  specifier: string,
  { namespace }: Pick<ModuleRecord, "namespace">,
  names: readonly string[],
  reexports: ReadonlySet<string> | undefined,
): void {
  const missing = names.find((name) => !(name in namespace) && !(isTypeScript(importer.file) && reexports?.has(name)));
  if (missing === undefined) return;
  const known = Object.keys(namespace).sort();
  const shown = known.slice(0, 60).join(", ") + (known.length > 60 ? " and more" : "");
  const message = `"${specifier}" has no export "${missing}", which ${importer.file} imports. It exports ${shown || "nothing"}.`;
  const position = importPlace(importer.file, specifier, missing);
  throw new ModuleError("MODULE_EXPORT_MISSING", message, { file: importer.file, position });
}

export function abandoned(record: ModuleRecord): ModuleError {
  return new ModuleError("MODULE_ABANDONED", `${record.file} was given up while it was being evaluated.`, { file: record.file });
}

export function stillEvaluating(record: ModuleRecord, importer: ModuleRecord): ModuleError {
  const message = `${importer.file} requires ${record.file}, which is still being evaluated. Use import() there.`;
  return new ModuleError("MODULE_THREW", message, { file: importer.file });
}

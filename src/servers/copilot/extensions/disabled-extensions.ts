import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorMessage, HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import { writeFileAtomic } from "../../../io/atomic-write.ts";

interface ExtensionSwitch {
  /** The extensions that the user has. */
  readonly known: readonly string[];
  readonly ids: readonly string[];
  readonly isEnabled: boolean;
}

/**
 * The ids of the user's extensions that sessions do not start.
 * @throws HostError `EXTENSION_SETTINGS` when the file exists and cannot be read.
 */
export function readDisabledExtensions(userDirectory: string | undefined): ReadonlySet<string> {
  return new Set(userDirectory === undefined ? [] : read(fileIn(userDirectory)));
}

/**
 * Enables or disables extensions of the user for later sessions.
 * @throws HostError `EXTENSION_UNKNOWN`, and as `readDisabledExtensions`; nothing has changed then.
 */
export function switchUserExtensions(userDirectory: string | undefined, { known, ids, isEnabled }: ExtensionSwitch): Promise<null> {
  const written = writing.then(async () => {
    const unknown = ids.find((id) => !known.includes(id));
    if (unknown !== undefined) throw unknownExtension(unknown, known);
    if (userDirectory === undefined || ids.length === 0) return null;
    const others = [...readDisabledExtensions(userDirectory)].filter((id) => !ids.includes(id));
    const disabled = isEnabled ? others : [...others, ...new Set(ids)];
    await writeFileAtomic(fileIn(userDirectory), `${JSON.stringify({ disabledExtensions: disabled }, null, 2)}\n`);
    return null;
  });
  // The caller gets the error; it must not fail the next write.
  writing = written.catch(() => {});
  return written;
}

let writing: Promise<unknown> = Promise.resolve();

/** Extensions are folders, so the file is not one of them. */
function fileIn(userDirectory: string): string {
  return join(userDirectory, "disabled.json");
}

function unknownExtension(id: string, known: readonly string[]): HostError {
  const advice = known.length === 0 ? "The user has no extensions." : `The user's extensions are ${known.join(", ")}.`;
  return new HostError("EXTENSION_UNKNOWN", `Extension not found: ${id.slice(0, 200)}. ${advice}`);
}

function read(file: string): readonly string[] {
  let problem: string;
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const ids = isRecord(value) ? value["disabledExtensions"] : undefined;
    if (Array.isArray(ids) && ids.every((id): id is string => typeof id === "string")) return ids;
    problem = 'it must be {"disabledExtensions": [ids]}';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    problem = errorMessage(error);
  }
  throw new HostError("EXTENSION_SETTINGS", `${file} cannot be read: ${problem}. Fix it, or delete it to enable all extensions.`);
}

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { errorMessage } from "../base/errors.ts";
import { keysFolderIn, listPrivateKeys, type StoredKey } from "../trust/private-keys.ts";
import { skillhostHome } from "../trust/trust-policy.ts";
import { CliError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";
import { visibleLine } from "./terminal-style.ts";

/** The user's signing keys. */
export function ownKeys(): readonly StoredKey[] {
  return listPrivateKeys(keysFolderIn(skillhostHome()));
}

/** The named key, or the only one. @throws CliError `KEY_UNKNOWN`, `KEY_AMBIGUOUS`. */
export function chooseKey(wanted: string | undefined): StoredKey {
  const all = ownKeys();
  const found = all.filter(({ id, name }) => wanted === undefined || id === wanted || name === wanted);
  const [key] = found;
  if (found.length === 1 && key !== undefined) return key;
  const known = all.map(({ id, name }) => visibleLine(`${id} ${name}`.trim())).join(", ");
  if (all.length === 0) throw new CliError("KEY_UNKNOWN", 'You have no signing key. Create one with "skillhost keys new".', 1);
  if (found.length === 0)
    throw new CliError("KEY_UNKNOWN", `You have no signing key ${JSON.stringify(wanted)}. Your keys are: ${known}.`, 1);
  throw new CliError("KEY_AMBIGUOUS", `You have several keys. Choose one by its id: ${known}.`, 1);
}

/** The passphrase from a file or the environment: other users can read command lines. */
export function readPassphrase({ io }: CommandContext, file: string | undefined): string | undefined {
  const given = file === undefined ? io.env["SKILLHOST_KEY_PASSPHRASE"] : readFirstLine(resolve(io.cwd, file));
  if (given !== "") return given;
  throw new CliError("KEY_PASSPHRASE", "The passphrase is empty. Set one, or unset it.", 1);
}

function readFirstLine(file: string): string {
  try {
    return readFileSync(file, "utf8").split(/\r?\n/)[0] ?? "";
  } catch (error) {
    throw new CliError("FILE_UNREADABLE", `The passphrase cannot be read: ${errorMessage(error)}.`, 1);
  }
}

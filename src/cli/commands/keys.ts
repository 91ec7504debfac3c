import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { logApproval } from "../../trust/approval-log.ts";
import { createPrivateKeyFile, keysFolderIn, listPrivateKeys, type StoredKey } from "../../trust/private-keys.ts";
import { changeTrustFile, readTrustFile, type TrustFile, trustFileIn } from "../../trust/trust-file.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import { formatKey, isKeyId, type PublicKey, parseKeyList, parseKeys } from "../../trust/trusted-keys.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../terminal-style.ts";

export interface KeyOptions {
  readonly passphraseFile?: string;
  readonly reason?: string;
}

/** Lists signing keys, trusted keys and revoked keys. */
export async function listKeys({ out }: CommandContext): Promise<number> {
  const own = ownKeys();
  const { keys = [], revoked = [] } = trustFile();
  const shown = (key: PublicKey): string => `${key.id}  ${visibleLine(key.name)}`.trimEnd();
  if (out.isJson) {
    const mine = own.map(({ id, name, created, isLocked, file }) => ({ id, name, created, isLocked, file }));
    out.envelope({ ok: true, data: { own: mine, trusted: keys.map(({ bytes: _, ...key }) => key), revoked }, diagnostics: [] });
    return 0;
  }
  const section = (title: string, lines: readonly string[]): void => {
    if (lines.length > 0) out.line(out.style.bold(title));
    for (const line of lines) out.line(`  ${line}`);
  };
  section(
    "yours",
    own.map((key) => `${shown(key)}${key.isLocked ? "  (with a passphrase)" : ""}`),
  );
  for (const { file } of own.filter((key) => key.isOpenToOthers))
    out.note(`Other users of this machine can read ${out.path(file)}. Restrict it: chmod 600 ${out.path(file)}`);
  section("trusted", keys.map(shown));
  section(
    "revoked",
    revoked.map(({ id, at, reason = "" }) => `${id}  ${visibleLine(`${at.slice(0, 10)} ${reason}`.trim())}`),
  );
  if (own.length + keys.length + revoked.length === 0) out.note('No keys. Create one with "skillhost keys new".');
  return 0;
}

/** Creates a key pair and trusts it. */
export async function newKey(context: CommandContext, name = "", { passphraseFile }: KeyOptions): Promise<number> {
  const { out } = context;
  if (/[\r\n]/.test(name) || name.length > 200)
    throw new CliError("KEY_INVALID", "A key's name must be a single line of up to 200 characters.", 2);
  const passphrase = readPassphrase(context, passphraseFile);
  const key = await createPrivateKeyFile(keysFolderIn(skillhostHome()), name, passphrase);
  logApproval({ action: "approved", kind: "key", id: `${key.id} ${key.name}`.trim(), by: "skillhost keys new" });
  await changeTrustFile(trustPath(), (before) => withKeys(before, [key]));
  const line = formatKey(key);
  if (out.isJson)
    out.envelope({ ok: true, data: { id: key.id, name: key.name, public: line, file: key.file, isLocked: key.isLocked }, diagnostics: [] });
  else out.line(visibleLine(line));
  out.note(
    `The private key ${key.id} is in ${out.path(key.file)}: keep that file secret. The line above is the public key: give it to others.`,
  );
  if (!key.isLocked) out.note("The key is not encrypted. Use SKILLHOST_KEY_PASSPHRASE or --passphrase-file to encrypt it.");
  return 0;
}

/** Trusts the keys in a text or a file. */
export async function trustKeys({ io, out }: CommandContext, given: string): Promise<number> {
  const path = resolve(io.cwd, given);
  const keys = existsSync(path) ? keysInFile(path) : parseKeys(given);
  if (keys.length === 0) throw new CliError("KEY_INVALID", `${given} contains no key.`, 1);
  const { revoked = [] } = trustFile();
  const gone = keys.find(({ id }) => revoked.some((each) => each.id === id));
  if (gone !== undefined)
    throw new CliError(
      "KEY_REVOKED",
      `The key ${gone.id} was revoked. Remove it from "revoked" in ${out.path(trustPath())} if that was a mistake.`,
      1,
    );
  for (const { id, name } of keys) logApproval({ action: "approved", kind: "key", id: `${id} ${name}`.trim(), by: "skillhost keys trust" });
  await changeTrustFile(trustPath(), (before) => withKeys(before, keys));
  if (out.isJson) out.envelope({ ok: true, data: { trusted: keys.map(({ id, name }) => ({ id, name })) }, diagnostics: [] });
  else for (const { id, name } of keys) out.line(`Trusted ${visibleLine(`${id} ${name}`.trim())}.`);
  return 0;
}

/** Revokes a key: everything that was signed with it becomes untrusted. */
export async function revokeKey({ out }: CommandContext, wanted: string, { reason }: KeyOptions): Promise<number> {
  const { keys = [] } = trustFile();
  const found = [...keys, ...ownKeys()].filter(({ id, name }) => id === wanted || name === wanted);
  const ids = new Set(isKeyId(wanted) ? [wanted] : found.map(({ id }) => id));
  const [id] = ids;
  if (id === undefined)
    throw new CliError(
      "KEY_UNKNOWN",
      `No key is named ${JSON.stringify(wanted)}. Run "skillhost keys list" to see your keys; name a key that you do not have by its id.`,
      1,
    );
  if (ids.size > 1) throw new CliError("KEY_AMBIGUOUS", `Several keys have this name. Use the id of one: ${[...ids].join(", ")}.`, 1);
  const revocation = { id, at: new Date().toISOString(), ...(reason !== undefined && { reason }) };
  logApproval({ action: "revoked", kind: "key", id, by: "skillhost keys revoke" });
  await changeTrustFile(trustPath(), (before) => ({
    ...before,
    ...(before.keys && { keys: before.keys.filter((key) => key.id !== id) }),
    revoked: [...(before.revoked ?? []).filter((each) => each.id !== id), revocation],
  }));
  if (out.isJson) out.envelope({ ok: true, data: { revoked: revocation }, diagnostics: [] });
  else out.line(`Revoked ${id}. Everything that was signed with it is rejected now.`);
  return 0;
}

/** Prints the public part of a key. */
export async function exportKey({ out }: CommandContext, wanted: string | undefined): Promise<number> {
  const trusted = trustFile().keys?.find(({ id, name }) => wanted !== undefined && (id === wanted || name === wanted));
  const key = trusted ?? chooseKey(wanted);
  if (out.isJson) out.envelope({ ok: true, data: { id: key.id, name: key.name, public: formatKey(key) }, diagnostics: [] });
  else out.line(visibleLine(formatKey(key)));
  return 0;
}

function trustPath(): string {
  return trustFileIn(skillhostHome());
}

function trustFile(): TrustFile {
  return readTrustFile(trustPath());
}

function withKeys(before: TrustFile, keys: readonly PublicKey[]): TrustFile {
  const known = (before.keys ?? []).filter(({ id }) => !keys.some((key) => key.id === id));
  const trustedAt = new Date().toISOString();
  return { ...before, keys: [...known, ...keys.map(({ id, name, bytes }) => ({ id, name, bytes, trustedAt }))] };
}

/** Reads keys from lines, from PEM, or from a project's configuration with its expected keys. */
function keysInFile(file: string): readonly PublicKey[] {
  const read = readTextFile(file, 1024 * 1024);
  if (!read.ok) throw new CliError("FILE_UNREADABLE", `${file}: ${read.diagnostic.message}`, 1);
  if (!file.endsWith(".json")) return parseKeys(read.text);
  const value = parseJson(read.text, file);
  const config = isRecord(value) && isRecord(value["skillhost"]) ? value["skillhost"] : value;
  const trust = isRecord(config) ? config["trust"] : undefined;
  const named = isRecord(trust) ? trust["onlyKeys"] : undefined;
  if (!Array.isArray(named)) throw new CliError("KEY_INVALID", `${file} names no keys in "trust.onlyKeys".`, 1);
  return parseKeyList(named.map(String), "trust.onlyKeys");
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The configuration reader reports the place; here only the keys are read.
    throw new CliError("KEY_INVALID", `${file} is not valid JSON. Fix it, or pass the key itself.`, 1);
  }
}

/** The user's signing keys. */
function ownKeys(): readonly StoredKey[] {
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

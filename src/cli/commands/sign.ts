import { randomUUID } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { counted } from "../../base/text.ts";
import type { SkillInfo } from "../../host/host.ts";
import { readSkill } from "../../skills/load/read-skill.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import { discoverRoot, resolveRoot } from "../../skills/store/skill-roots.ts";
import { isInert } from "../../trust/checked-folder.ts";
import { openPrivateKey } from "../../trust/private-keys.ts";
import { type Signed, type SigningKey, type SignRequest, signFolder } from "../../trust/skill-signature.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { named } from "../describe.ts";
import { skillDirectories } from "../open-host.ts";
import { runnableFolders } from "../project-consent.ts";
import { visibleLine } from "../terminal-style.ts";
import { chooseKey, readPassphrase } from "./keys.ts";

export interface SignOptions {
  readonly key?: string;
  readonly expires?: string;
  readonly passphraseFile?: string;
}

/** Signs the current state of a skill: its files, and the definitions of its loaded tools. */
export async function sign(
  context: CommandContext,
  wanted: string,
  { key: keyName, expires, passphraseFile }: SignOptions,
): Promise<number> {
  const { out } = context;
  const until = expires === undefined ? undefined : readExpiry(expires);
  const folder = findFolder(context, wanted);
  const stored = chooseKey(keyName);
  const key = openPrivateKey(stored, stored.isLocked ? readPassphrase(context, passphraseFile) : undefined);
  const { skill, tools } = await loadToSign(context, folder);
  const { name, version } = skill;
  const { signed, left, notes } = await signPacked(folder, { skill: name, version, tools, created: new Date(), expires: until }, key);
  const { files, created, expires: end } = signed.statement;
  const data = {
    skill: name,
    version,
    file: signed.file,
    key: key.publicKey.id,
    files: files.size,
    tools: tools.size,
    created,
    expires: end,
    left,
  };
  if (out.isJson) out.envelope({ ok: true, data, diagnostics: [] });
  else {
    const what = visibleLine(version === undefined ? name : `${name} ${version}`);
    const how = `${counted(files.size, "file")} and ${counted(tools.size, "tool")}, with ${visibleLine(`${stored.id} ${stored.name}`.trim())}`;
    out.line(`Signed ${what}: ${how}${end === undefined ? "" : `, until ${end.slice(0, 10)}`} → ${out.path(signed.file)}`);
    describeLeft(context, left);
  }
  for (const note of notes) out.note(note);
  return 0;
}

function describeLeft({ out }: CommandContext, left: readonly string[]): void {
  if (left.length === 0) return;
  out.line(`Not signed, because these files are not packed: ${named(left, 20)}.`);
  if (left.every(isInert)) return;
  const advice = 'To pack and sign a file, add it to "files" in package.json.';
  out.note(
    `Where signatures are required, the skill loads from a packed copy, but not from this folder while it contains these files. ${advice}`,
  );
}

interface SignedPacked {
  readonly signed: Extract<Signed, { ok: true }>;
  /** The files that are neither packed nor signed. */
  readonly left: readonly string[];
  readonly notes: readonly string[];
}

/** Signs the files that `pack` would take, and verifies that it takes the signature too. */
async function signPacked(folder: string, request: SignRequest, key: SigningKey): Promise<SignedPacked> {
  const { isSignaturePacked, listPackedFiles, packSignature } = await import("../../packages/packed-files.ts");
  const { files, left } = await listPackedFiles(folder);
  const signed = await signOnly(folder, { ...request, only: files }, key);
  const after = await listPackedFiles(folder);
  if (isSignaturePacked(after)) return { signed, left, notes: [] };
  const changed = await packSignature(folder, after);
  if (changed === undefined) {
    const note = `The signature will not be packed with the skill. Check .npmignore, .gitignore and "files" in ${join(after.root, "package.json")}.`;
    return { signed, left, notes: [note] };
  }
  // package.json may be one of the signed files.
  const again = await signOnly(folder, { ...request, only: files }, key);
  return { signed: again, left, notes: [`Added the signature to "files" in ${changed}, so that it is packed.`] };
}

async function signOnly(folder: string, request: SignRequest, key: SigningKey): Promise<Extract<Signed, { ok: true }>> {
  const signed = await signFolder(folder, request, key);
  if (!signed.ok) throw new CliError("SIGN_REFUSED", `${folder} cannot be signed, and nothing was written.`, 1, signed.problems);
  return signed;
}

function findFolder(context: CommandContext, wanted: string): string {
  const path = resolve(context.io.cwd, wanted);
  if (existsSync(path) && statSync(path).isDirectory()) {
    if (isSkillFolder(path)) return path;
    throw new CliError("SKILL_UNKNOWN", `${path} is not a skill: it has neither SKILL.md nor skill.json.`, 1);
  }
  const roots = skillDirectories(context).map((entry) => resolveRoot(entry, context.io.cwd));
  const folders = roots.flatMap((root) => discoverRoot(root).folders);
  const found = folders.filter((folder) => readSkill(folder, () => {})?.name === wanted);
  const [folder] = found;
  if (folder === undefined)
    throw new CliError(
      "SKILL_UNKNOWN",
      `No skill is named ${JSON.stringify(wanted)}. Pass its folder, or the directory that contains it with --skills.`,
      1,
    );
  if (found.length > 1)
    throw new CliError("SKILL_AMBIGUOUS", `Several skills have this name. Pass the folder of one: ${found.join(", ")}.`, 1);
  return folder;
}

/** Loads a skill for signing. Its old signature is ignored because it will be replaced. A skill with errors is not signed. */
async function loadToSign(
  context: CommandContext,
  folder: string,
): Promise<{ readonly skill: SkillInfo; readonly tools: ReadonlyMap<string, string> }> {
  const { io, log, config } = context;
  const { createHost } = await import("../../host/create-host.ts");
  const nowhere = join(tmpdir(), `skillhost-${randomUUID()}`);
  const host = await createHost({
    workingDirectory: io.cwd,
    skillDirectories: [folder],
    packageSkills: false,
    // Plugins may run the skill's tools.
    plugins: config.plugins ?? [],
    watch: false,
    logger: log,
    guardExit: true,
    trust: { directory: nowhere, policy: "off", folders: runnableFolders(context, [folder], [folder]) },
  });
  try {
    const skill = host.skills[0]!;
    const errors = skill.diagnostics.filter(({ severity }) => severity === "error");
    if (errors.length > 0) throw new CliError("SIGN_REFUSED", `${folder} has errors, so it was not signed.`, 1, errors);
    const session = await host.createSession({ persist: false });
    const own = session.listTools().filter(({ source }) => source.kind === "skill" && source.name === skill.name);
    return { skill, tools: new Map(own.map(({ name, signature }) => [name, signature])) };
  } finally {
    await host.close();
  }
}

/** Parses an expiry: a number of days, or the end of a date. */
function readExpiry(text: string): Date {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const date =
    days === undefined
      ? new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59.999Z` : text)
      : new Date(Date.now() + Number(days) * 86_400_000);
  if (Number.isNaN(date.getTime()) || !/^\d/.test(text))
    throw usageError(`--expires must be a number of days such as 90d, or a date such as 2030-01-31, not "${visibleLine(text)}".`);
  if (date.getTime() <= Date.now()) throw usageError(`--expires must be in the future, but ${visibleLine(text)} is not.`);
  return date;
}

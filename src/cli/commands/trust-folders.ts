import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { HostError } from "../../base/errors.ts";
import { isInside, realPathOfDeepest } from "../../io/confine-path.ts";
import { logApproval } from "../../trust/approval-log.ts";
import { changeTrustFile, identityOf, readTrustFile, type TrustedFolder, trustFileIn, trustFolderIn } from "../../trust/trust-file.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../terminal-style.ts";

/** Trusts a folder: its code may run from now on. */
export async function trustFolder(context: CommandContext, given: string | undefined): Promise<number> {
  const { out } = context;
  const described = await trustFolderIn(trustFile(), folderOf(context, given));
  if (out.isJson) out.envelope({ ok: true, data: { trusted: described }, diagnostics: [] });
  else out.line(`Trusted: ${visibleLine(described.path)} and everything below it.`);
  return 0;
}

/** Lists trusted folders, and whether they are still the folders that were trusted. */
export async function listFolders({ out }: CommandContext): Promise<number> {
  const folders = kept().map((folder) => ({ ...folder, state: stateOf(folder) }));
  if (out.isJson) out.envelope({ ok: true, data: { folders }, diagnostics: [] });
  else for (const { path, trustedAt, state } of folders) out.line(`${visibleLine(path)}  ${trustedAt.slice(0, 10)}${words[state]}`);
  if (folders.length === 0) out.note('You do not trust any folder yet. Run "skillhost trust add" to trust the current project.');
  return 0;
}

/** Removes trust: the code of the folder does not run again without a question. */
export async function distrustFolder(context: CommandContext, given: string | undefined): Promise<number> {
  const { out } = context;
  const folder = folderOf(context, given);
  const names = [folder, ...(existsSync(folder) ? [realPathOfDeepest(folder)] : [])];
  const isMeant = ({ path }: TrustedFolder): boolean => names.includes(path);
  if (!kept().some(isMeant)) {
    const above = kept().find(({ path }) => names.some((name) => isInside(path, name)));
    const why =
      above === undefined
        ? 'Run "skillhost trust list" to see the trusted folders.'
        : `It is inside ${above.path}, which is trusted: remove that instead.`;
    throw new HostError("FOLDER_NOT_TRUSTED", `${folder} is not a trusted folder. ${why}`);
  }
  for (const { path } of kept().filter(isMeant)) logApproval({ action: "revoked", kind: "folder", id: path, by: "skillhost trust remove" });
  await changeTrustFile(trustFile(), (before) => ({ ...before, folders: before.folders?.filter((each) => !isMeant(each)) }));
  if (out.isJson) out.envelope({ ok: true, data: { removed: folder }, diagnostics: [] });
  else out.line(`No longer trusted: ${visibleLine(folder)}.`);
  return 0;
}

const words = {
  trusted: "",
  changed: "  replaced since you trusted it: you will be asked again",
  missing: "  no longer exists",
} as const;

function stateOf({ path, identity }: TrustedFolder): keyof typeof words {
  const now = identityOf(path);
  if (now === undefined) return "missing";
  return now === identity ? "trusted" : "changed";
}

function folderOf({ io, consent }: CommandContext, given: string | undefined): string {
  return given === undefined ? consent.folder : resolve(io.cwd, given);
}

function kept(): readonly TrustedFolder[] {
  return readTrustFile(trustFile()).folders ?? [];
}

function trustFile(): string {
  return trustFileIn(skillhostHome());
}

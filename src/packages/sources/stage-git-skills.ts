import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { HostError } from "../../base/errors.ts";
import { isIgnoredName } from "../../trust/folder-digests.ts";
import { EntryRules } from "../entry-rules.ts";
import { tarballLimits } from "../inspect-tarball.ts";
import { folderName } from "./find-skills.ts";
import type { GitRepository, TreeEntry } from "./git-repository.ts";
import type { GitSource } from "./git-source.ts";

/** A skill in a folder where nothing uses it yet. */
export interface StagedSkill {
  /** The name of its folder. */
  readonly name: string;
  readonly folder: string;
  /** In the repository; "" is its top. */
  readonly path: string;
  readonly files: number;
  readonly bytes: number;
}

interface StageSkillsOptions {
  readonly entries: readonly TreeEntry[];
  /** The paths of the skills in the repository. */
  readonly skills: readonly string[];
  /** An empty folder. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Writes skills of a fetched commit into a staging folder. Their entries are judged first, by the rules for tarballs and those below, and
 * nothing is written if one of them is refused.
 * @throws HostError `GIT_TREE` naming the entry and the problem.
 */
export async function stageGitSkills(
  repository: GitRepository,
  source: GitSource,
  { entries, skills, folder, signal }: StageSkillsOptions,
): Promise<readonly StagedSkill[]> {
  const total = new EntryRules(tarballLimits);
  const plans = skills.map((path) => planSkill(path, source, { entries, total }));
  const targets = new Map<TreeEntry, string>();
  const staged: StagedSkill[] = [];
  for (const [index, { name, path, files, bytes }] of plans.entries()) {
    const at = join(folder, String(index), name);
    for (const file of files) targets.set(file, join(at, path === "" ? file.path : file.path.slice(path.length + 1)));
    staged.push({ name, folder: at, path, files: files.length, bytes });
  }
  await repository.readFiles([...targets.keys()], signal, async (entry, bytes) => {
    if (isLfsPointer(bytes)) throw refusal(entry.path, "is a pointer of Git LFS, and its content is not fetched.");
    const target = targets.get(entry)!;
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, bytes, { flag: "wx", mode: entry.isExecutable ? 0o755 : 0o644 });
  });
  return staged;
}

interface SkillPlan extends Pick<StagedSkill, "name" | "path" | "bytes"> {
  readonly files: readonly TreeEntry[];
}

function planSkill(
  path: string,
  { url }: GitSource,
  { entries, total }: { readonly entries: readonly TreeEntry[]; readonly total: EntryRules },
): SkillPlan {
  const name = path === "" ? basename(url.replace(/\/+$/, ""), ".git").replace(/^.*:/, "") : folderName(path);
  if (!isSkillFolderName(name)) throw refusal(path === "" ? url : path, "has a name that cannot be the name of a skill's folder.");
  const own = entries.filter((entry) => path === "" || entry.path.startsWith(`${path}/`));
  const files = own.filter((entry) => !isIgnoredName(entry.path.slice(entry.path.lastIndexOf("/") + 1)));
  for (const entry of own) {
    const fault = faultOfKind(entry) ?? total.addFile(entry.path, entry.size);
    if (fault !== undefined) throw refusal(entry.path, fault);
  }
  return { name, path, files, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}

export function isSkillFolderName(name: string): boolean {
  return /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u.test(name) && name !== "node_modules" && name.length <= 128;
}

function faultOfKind({ kind, path }: TreeEntry): string | undefined {
  if (kind === "link") return "is a symbolic link, which is not copied: its target can be anywhere.";
  if (kind === "submodule") return "is a submodule, which is not fetched.";
  if (path.includes("\uFFFD")) return "has a name that is not valid UTF-8.";
  if (path.split("/").includes("node_modules")) return "is in a node_modules folder, which neither locks nor signatures cover.";
  return undefined;
}

function isLfsPointer(bytes: Buffer): boolean {
  return bytes.length < 1_024 && bytes.toString("latin1", 0, 42) === "version https://git-lfs.github.com/spec/v1";
}

function refusal(path: string, why: string): HostError {
  const advice = "Ask its author to change that, or choose other skills with --skill.";
  return new HostError("GIT_TREE", `Nothing was installed: ${JSON.stringify(path.slice(0, 200))} ${why} ${advice}`);
}

import { basename, dirname, join } from "node:path";
import { lintSkillDocument } from "../../formats/skills/lint-skill-document.ts";
import { maxDocumentBytes } from "../../formats/text/limits.ts";
import { readSkill } from "../../skills/load/read-skill.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import type { BundleFiles, PlacedSource, Sources } from "./bundle.ts";

interface SkillFolders {
  readonly skillDirectories: readonly string[];
  /** Their names; for most, those of their folders. */
  readonly skills: readonly string[];
}

/**
 * Finds a bundle's skills. A folder of skills is taken as a whole, so that what is added to it later is found too, unless
 * something in it must not be used: then the others are taken one by one.
 */
export function loadSkillFolders(files: BundleFiles, { dialect, name, given, replacesSkills }: Sources): SkillFolders {
  if (dialect === "agent-plugins") return conformingSkills(files);
  const named = given.skills ?? [];
  const found = named.flatMap((source) => pathOf(files, source) ?? []);
  // Claude Code takes the paths on top of the usual folder; everybody else, instead of it.
  const usual = (dialect === "claude" && !replacesSkills) || given.skills === undefined ? [...usualFolder(files)] : [];
  const all = [...new Set([...usual, ...found])];
  const root = all.length === 0 && files.has("SKILL.md", "file") ? [files.root] : [];
  const { skillDirectories, skills } = collect([...all, ...root].map((folder) => skillsIn(files, folder)));
  return { skillDirectories, skills: skills.map((skill) => nameOf(skill, files, name)) };
}

function usualFolder(files: BundleFiles): readonly string[] {
  return files.has("skills", "folder") ? [join(files.root, "skills")] : [];
}

function pathOf(files: BundleFiles, source: PlacedSource): string | undefined {
  if (source.kind === "inline") return undefined;
  const path = files.find(source.path, source);
  // Some name the file itself.
  return path !== undefined && basename(path).toLowerCase() === "skill.md" ? dirname(path) : path;
}

interface FoundSkills {
  readonly directory: string;
  readonly skills: readonly string[];
  /** Whether the directory itself may be taken. */
  readonly isWhole: boolean;
}

function skillsIn(files: BundleFiles, folder: string): FoundSkills {
  if (isSkillFolder(folder)) return { directory: folder, skills: [folder], isWhole: true };
  const before = files.diagnostics.length;
  const folders = files.list(folder).filter(({ kind }) => kind === "folder");
  const skills = folders.map(({ path }) => path).filter(isSkillFolder);
  return { directory: folder, skills, isWhole: files.diagnostics.length === before };
}

function collect(found: readonly FoundSkills[]): SkillFolders {
  return {
    skillDirectories: found.flatMap(({ directory, skills, isWhole }) => (isWhole ? [directory] : skills)),
    skills: [...new Set(found.flatMap(({ skills }) => skills))],
  };
}

/** A skill that is the bundle itself, or all of its folder of skills, is not called as that folder. */
function nameOf(folder: string, files: BundleFiles, bundleName: string): string {
  if (folder !== files.root && folder !== join(files.root, "skills")) return basename(folder);
  const text = readSkill(folder, () => {});
  const isNamed = text?.manifest !== undefined || text?.document?.frontMatter["name"] !== undefined;
  return isNamed ? text.name : bundleName;
}

/** By the Agent Plugins specification: the immediate children of `skills/`, and only those that conform to Agent Skills. */
function conformingSkills(files: BundleFiles): SkillFolders {
  const folder = files.find("skills");
  if (folder === undefined) return { skillDirectories: [], skills: [] };
  if (!files.has("skills", "folder")) {
    files.report({
      severity: "error",
      code: "BUNDLE_COMPONENT",
      message: "This must be a folder of skills. It is ignored.",
      file: folder,
    });
    return { skillDirectories: [], skills: [] };
  }
  const { skills, ...found } = skillsIn(files, folder);
  const conforming = skills.filter((skill) => conforms(files, skill));
  const all = collect([{ ...found, skills: conforming, isWhole: found.isWhole && conforming.length === skills.length }]);
  return { ...all, skills: all.skills.map((skill) => basename(skill)) };
}

function conforms(files: BundleFiles, skill: string): boolean {
  const file = join(skill, "SKILL.md");
  const text = files.has(files.nameOf(file), "file") ? files.read(file, maxDocumentBytes) : undefined;
  if (text === undefined) {
    const message = "A skill of this plugin needs a SKILL.md inside the plugin. It is ignored.";
    files.report({ severity: "error", code: "BUNDLE_SKILL", message, file });
    return false;
  }
  const faults = lintSkillDocument(text, { file, directoryName: basename(skill) }).filter(({ severity }) => severity === "error");
  const [first] = faults;
  // A skill that is used is watched by whoever loads it; this one may come to be used.
  if (first === undefined) return files.seen.delete(file) || true;
  const message = `This skill does not conform to the Agent Skills specification, so it is ignored: ${first.message}`;
  files.report({ ...first, code: "BUNDLE_SKILL", message });
  return false;
}

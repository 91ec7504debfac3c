import { basename, dirname, join } from "node:path";
import { lintSkillDocument } from "../../formats/skills/lint-skill-document.ts";
import { maxDocumentBytes } from "../../formats/text/limits.ts";
import { readSkill } from "../../skills/load/read-skill.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import type { BundleFiles, Sources } from "./bundle.ts";
import { componentPaths } from "./component-paths.ts";

interface SkillFolders {
  readonly skillDirectories: readonly string[];
  /** The names of the skills, usually those of their folders. */
  readonly skills: readonly string[];
}

/**
 * Finds a bundle's skills. A folder of skills is used as a whole, so that skills added later are found too, unless something in
 * it must not be used: then its other skills are used one by one.
 */
export function loadSkillFolders(files: BundleFiles, sources: Sources): SkillFolders {
  if (sources.dialect === "agent-plugins") return conformingSkills(files);
  // Some manifests name the file of a skill instead of its folder.
  const paths = componentPaths(files, sources, "skills").map((path) =>
    basename(path).toLowerCase() === "skill.md" ? dirname(path) : path,
  );
  const all = [...new Set(paths)];
  const root = all.length === 0 && files.has("SKILL.md", "file") ? [files.root] : [];
  const { skillDirectories, skills } = collect([...all, ...root].map((folder) => skillsIn(files, folder)));
  return { skillDirectories, skills: skills.map((skill) => nameOf(skill, files, sources.name)) };
}

interface FoundSkills {
  readonly directory: string;
  readonly skills: readonly string[];
  /** Whether everything in the directory may be used. */
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

/** A skill has the name of its folder, unless that is the bundle itself or its folder of skills. */
function nameOf(folder: string, files: BundleFiles, bundleName: string): string {
  if (folder !== files.root && folder !== join(files.root, "skills")) return basename(folder);
  const text = readSkill(folder, () => {});
  const isNamed = text?.manifest !== undefined || text?.document?.frontMatter["name"] !== undefined;
  return isNamed ? text.name : bundleName;
}

/** The Agent Plugins specification allows only the immediate children of `skills/` that conform to Agent Skills. */
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
  // The skill store watches skills that are used. A skill that is not used is watched here, since an edit may make it usable.
  if (first === undefined) return files.seen.delete(file) || true;
  const message = `This skill does not conform to the Agent Skills specification, so it is ignored: ${first.message}`;
  files.report({ ...first, code: "BUNDLE_SKILL", message });
  return false;
}

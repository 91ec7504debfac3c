import { statSync } from "node:fs";
import { extname, join } from "node:path";
import { globSync, isDynamicPattern } from "tinyglobby";
import type { Diagnostic } from "../base/diagnostic.ts";
import { expandPrompt, type PromptFile, parsePromptFile } from "../formats/skills/prompt-file.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import { existsAt, namesAt } from "./look.ts";
import { type Reading, readText } from "./read-text.ts";
import type { SkillPrompt } from "./skill.ts";
import { pathInSkill } from "./skill-path.ts";

const promptExtensions = new Set([".md", ".txt", ".markdown"]);

/** A prompt file as it was read. */
export interface ReadPrompt extends SkillPrompt {
  readonly prompt: PromptFile;
}

/**
 * Reads a skill's prompts: without a list those in `prompts/`, by name; with one what it names, in its order. A folder
 * stands for the prompts in it, a pattern for its matches by name. Modules among them are left to whoever runs them.
 */
export function readPrompts(
  listed: readonly string[] | undefined,
  manifestFile: string,
  reading: Reading,
  moduleExtensions: readonly string[],
): ReadPrompt[] {
  const { folder, view } = reading;
  const paths = listed === undefined ? promptsIn(folder, view) : listed.flatMap((item) => matchesOf(folder, item, view));
  const texts = [...new Set(paths)].filter((path) => !moduleExtensions.includes(extname(path)));
  return texts.flatMap((path): ReadPrompt[] => {
    const read = readPrompt(path, manifestFile, reading);
    if (read === undefined) reading.lost.prompts.push(path);
    return read ?? [];
  });
}

function readPrompt(path: string, manifestFile: string, reading: Reading): [ReadPrompt] | undefined {
  const { folder, files, diagnostics, view } = reading;
  const confined = pathInSkill(folder, path, existsAt(manifestFile, view) ? manifestFile : join(folder, path), view);
  if (!confined.ok) {
    diagnostics.push(confined.diagnostic);
    return undefined;
  }
  if (!existsAt(confined.path, view)) {
    files.add(confined.path);
    diagnostics.push(promptMissing(path, manifestFile));
    return undefined;
  }
  const text = readText(confined.path, maxDocumentBytes, reading);
  if (text === undefined) return undefined;
  const { prompt, diagnostics: found } = parsePromptFile(text, confined.path);
  diagnostics.push(...found);
  return [{ path, text: expandPrompt(prompt.body, { baseDir: folder }), prompt }];
}

function matchesOf(folder: string, item: string, view: Reading["view"]): string[] {
  const path = item.replace(/^\.\//, "");
  if (isDynamicPattern(path)) return globSync(path, { cwd: folder, expandDirectories: false, followSymbolicLinks: false }).sort();
  // A folder that is called like a prompt file stands where a file was meant.
  const isFolder = !promptExtensions.has(extname(path)) && statSync(join(folder, path), { throwIfNoEntry: false })?.isDirectory();
  return isFolder ? promptsIn(folder, view, path.replace(/\/+$/, "")) : [path];
}

function promptsIn(folder: string, view: Reading["view"], directory = "prompts"): string[] {
  try {
    const names = namesAt(join(folder, directory), view).filter(
      (name) => promptExtensions.has(extname(name).toLowerCase()) && !name.startsWith("."),
    );
    return names.sort().map((name) => `${directory}/${name}`);
  } catch {
    // No such folder: a skill without prompts.
    return [];
  }
}

function promptMissing(path: string, file: string): Diagnostic {
  return {
    severity: "error",
    code: "PROMPT_MISSING",
    file,
    message: `The prompt ${JSON.stringify(path)} is listed and not there. Add it, or take it out of "prompts".`,
  };
}

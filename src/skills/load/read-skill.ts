import { type Stats, statSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { globSync } from "tinyglobby";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { expandPrompt } from "../../formats/skills/expand-prompt.ts";
import { type PromptFile, parsePromptFile } from "../../formats/skills/prompt-file.ts";
import { parseSkillDocument, type SkillDocument } from "../../formats/skills/skill-document.ts";
import { maxManifestBytes, parseSkillManifest, type SkillManifest } from "../../formats/skills/skill-manifest.ts";
import { parseToolJson, type ToolJson, toToolJson } from "../../formats/skills/tool-json.ts";
import { decodeText } from "../../formats/text/decode-text.ts";
import { maxDocumentBytes, maxJsonBytes } from "../../formats/text/limits.ts";
import { type FileGuard, readTextFile } from "../../io/read-bounded.ts";
import type { FolderView } from "../../trust/checked-folder.ts";
import type { SkillPrompt } from "../skill.ts";
import { SkillBody } from "./skill-body.ts";
import { defaultSkillName, documentInSkill, entriesAt, existsAt, isPattern, pathInSkill } from "./skill-path.ts";
import { moduleExtensions, type ToolEntry } from "./tool-entries.ts";

/** The fields of a SKILL.md that a loaded skill uses. The others would only occupy memory. */
export interface SkillHead
  extends Pick<SkillDocument, "allowedTools" | "argumentHint" | "arguments" | "disableModelInvocation" | "userInvocable"> {
  /** Whether the front matter has a name. */
  readonly isNamed: boolean;
}

/** A place in a file of a certain content. */
interface BodySource {
  /** sha256 of the file as 64 hex digits. */
  readonly digest: string;
  readonly start: number;
  readonly length: number;
}

/** A skill without its code. */
export interface SkillText {
  readonly name: string;
  readonly description: string;
  readonly document?: SkillHead;
  /** The name of its document: `SKILL.md` in any case. */
  readonly documentName?: string;
  readonly manifest?: SkillManifest;
  readonly manifestFile: string;
  readonly prompts: readonly SkillPrompt[];
  /** The prompts with their front matter. */
  readonly promptFiles: readonly ReadPrompt[];
  readonly body?: SkillBody;
  /** Where the body lies in the file, if it is there byte by byte. */
  readonly source?: BodySource;
  /** The files that were read. */
  readonly files: ReadonlySet<string>;
  /** Parts that should exist but could not be read. */
  readonly lost: LostText;
  readonly diagnostics: readonly Diagnostic[];
}

/** Parts of a skill's text that exist but cannot be read, or are named but missing. */
interface LostText {
  readonly manifest: boolean;
  /** True also for an empty SKILL.md: editors empty a file before they write it. */
  readonly document: boolean;
  readonly prompts: readonly string[];
}

/**
 * Reads the manifest, the SKILL.md and the prompts of a folder; undefined when it contains no skill (any longer). If both files exist,
 * SKILL.md gives name, description and instructions, as in every other host, and skill.json the rest.
 */
export function readSkill(
  folder: string,
  seen: Reading["seen"],
  codeExtensions: readonly string[] = moduleExtensions,
  guard?: FileGuard,
  view?: FolderView,
): SkillText | undefined {
  const lost = { manifest: false, document: false, prompts: [] };
  const reading: Reading = { folder, files: new Set(), diagnostics: [], lost, seen, guard, view };
  const { files, diagnostics } = reading;
  const manifestFile = join(folder, "skill.json");
  const manifest = existsAt(manifestFile, view) ? readManifest(manifestFile, reading) : undefined;
  const fileName = documentName(folder, view);
  const read = fileName === undefined ? undefined : readDocument(fileName, reading);
  const document = read?.document;
  if (files.size === 0) return undefined;
  const isNamed = document !== undefined && Object.hasOwn(document.frontMatter, "name");
  const name = (isNamed ? document.name : undefined) ?? manifest?.name ?? defaultSkillName(folder);
  if (isNamed && manifest && document.name !== manifest.name) diagnostics.push(namesDiffer(document.name, manifest.name, manifestFile));
  const promptFiles = lost.manifest ? [] : readPrompts(manifest?.prompts, manifestFile, reading, codeExtensions);
  return {
    ...detached({
      name,
      description: describe(document, manifest),
      ...(document && { document: headOf(document, isNamed) }),
      diagnostics: diagnostics.map((diagnostic) => ({ source: name, ...diagnostic })),
    }),
    ...(read && fileName ? { documentName: fileName, body: read.body, ...(read.source && { source: read.source }) } : {}),
    ...(manifest ? { manifest } : {}),
    manifestFile,
    prompts: promptFiles.map(({ path, text }) => ({ path, text })),
    promptFiles,
    files,
    lost,
  };
}

/** A copy of JSON data. A part of a parsed text keeps the whole text in memory otherwise. */
function detached<T>(data: T): T {
  return JSON.parse(JSON.stringify(data)) as T;
}

function readManifest(file: string, reading: Reading): SkillManifest | undefined {
  const { text } = readOwnText(file, maxManifestBytes, reading) ?? {};
  const { manifest, diagnostics: found } = text === undefined ? { diagnostics: [] } : parseSkillManifest(text, file);
  reading.diagnostics.push(...found);
  // A skill.json of another product is ignored without an error.
  reading.lost.manifest = text === undefined || (manifest === undefined && found.some(({ severity }) => severity === "error"));
  return manifest;
}

interface ReadDocument {
  readonly document: SkillDocument;
  readonly body: SkillBody;
  readonly source: BodySource | undefined;
}

function readDocument(name: string, reading: Reading): ReadDocument | undefined {
  const { folder } = reading;
  const file = join(folder, name);
  if (name !== "SKILL.md") reading.diagnostics.push(otherCase(file, name));
  const read = readOwnText(file, maxDocumentBytes, reading);
  const text = read?.text;
  reading.lost.document = text === undefined || text.trim() === "";
  if (text === undefined) return undefined;
  if (text.trim() === "") reading.diagnostics.push(emptyDocument(file));
  const { document, diagnostics: found } = parseSkillDocument(text, { file, directoryName: basename(folder) });
  reading.diagnostics.push(...found);
  const body = Buffer.from(document.body, "utf8");
  return { document, body: new SkillBody(folder, body), source: read && sourceOf(body, read) };
}

/** Undefined also if the body was changed while it was read: its line ends, hidden characters, or another encoding. */
function sourceOf(body: Buffer, { bytes, digest }: TextRead): BodySource | undefined {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1]! <= 32) end--;
  const start = end - body.length;
  // A byte order mark is not part of the digest.
  if (digest === undefined || start < 0 || bytes[0] === 0xef || !body.equals(bytes.subarray(start, end))) return undefined;
  return { digest, start, length: body.length };
}

function readOwnText(file: string, maxBytes: number, reading: Reading): TextRead | undefined {
  const confined = documentInSkill(reading.folder, basename(file), reading.view);
  if (confined.ok) return readText(file, maxBytes, reading);
  reading.files.add(file);
  reading.diagnostics.push(confined.diagnostic);
  return undefined;
}

/** The exact name if it exists (case-insensitive file systems accept any spelling), otherwise the first other spelling. */
function documentName(folder: string, view: FolderView | undefined): string | undefined {
  let names: string[];
  try {
    names = entriesAt(folder, view).flatMap(({ name }) => (name.toLowerCase() === "skill.md" ? name : []));
  } catch {
    // The folder was removed: it contains no skill.
    return undefined;
  }
  return names.includes("SKILL.md") ? "SKILL.md" : names.sort()[0];
}

function headOf(document: SkillDocument, isNamed: boolean): SkillHead {
  const { allowedTools, argumentHint, arguments: declared, disableModelInvocation, userInvocable } = document;
  return {
    isNamed,
    disableModelInvocation,
    userInvocable,
    ...(allowedTools !== undefined && { allowedTools }),
    ...(argumentHint !== undefined && { argumentHint }),
    ...(declared !== undefined && { arguments: declared }),
  };
}

function describe(document: SkillDocument | undefined, manifest: SkillManifest | undefined): string {
  const isDeclared = document && Object.hasOwn(document.frontMatter, "description") && !document.descriptionInferred;
  if (isDeclared) return document.description;
  return manifest?.description ?? document?.description ?? "";
}

function otherCase(file: string, name: string): Diagnostic {
  return {
    severity: "warning",
    code: "SKILL_FILE_CASE",
    file,
    message: `${name} works here, but other hosts read only SKILL.md. Rename it to SKILL.md.`,
  };
}

function emptyDocument(file: string): Diagnostic {
  const message = "This file is empty. Add the skill's front matter and instructions, or remove it.";
  return { severity: "error", code: "SKILL_FILE_EMPTY", file, message };
}

function namesDiffer(document: string, manifest: string, file: string): Diagnostic {
  const message = `SKILL.md names this skill "${document}" and skill.json "${manifest}"; the name in SKILL.md is used, as in other hosts. Use the same name in both.`;
  return { severity: "warning", code: "SKILL_NAMES_DIFFER", file, message };
}

const promptExtensions = new Set([".md", ".txt", ".markdown"]);

/** A prompt file with its content. */
interface ReadPrompt extends SkillPrompt {
  readonly prompt: PromptFile;
}

/**
 * Reads a skill's prompts: without a list, those in `prompts/` by name; with one, what it names, in its order. A folder means the prompts
 * in it, a pattern its matches by name. Modules are left to the module runner.
 */
function readPrompts(
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
  const { text } = readText(confined.path, maxDocumentBytes, reading) ?? {};
  if (text === undefined) return undefined;
  const { prompt, diagnostics: found } = parsePromptFile(text, confined.path);
  diagnostics.push(...found);
  return [{ path, text: expandPrompt(prompt.body, { baseDir: folder }), prompt }];
}

function matchesOf(folder: string, item: string, view: Reading["view"]): string[] {
  const path = item.replace(/^\.\//, "");
  if (isPattern(path)) return globSync(path, { cwd: folder, expandDirectories: false, followSymbolicLinks: false }).sort();
  // A folder with the name of a prompt file is an error, not a folder of prompts.
  const isFolder = !promptExtensions.has(extname(path)) && statSync(join(folder, path), { throwIfNoEntry: false })?.isDirectory();
  return isFolder ? promptsIn(folder, view, path.replace(/\/+$/, "")) : [path];
}

function promptsIn(folder: string, view: Reading["view"], directory = "prompts"): string[] {
  const path = join(folder, directory);
  if (view?.kindOf(path) === "nothing") return [];
  try {
    const names = entriesAt(path, view)
      .map(({ name }) => name)
      .filter((name) => promptExtensions.has(extname(name).toLowerCase()) && !name.startsWith("."));
    return names.sort().map((name) => `${directory}/${name}`);
  } catch {
    // The folder does not exist: a skill without prompts.
    return [];
  }
}

function promptMissing(path: string, file: string): Diagnostic {
  return {
    severity: "error",
    code: "PROMPT_MISSING",
    file,
    message: `The prompt ${JSON.stringify(path)} is listed but does not exist. Add it, or remove it from "prompts".`,
  };
}

/** What has been read of a folder so far, with its diagnostics. */
export interface Reading {
  readonly folder: string;
  readonly files: Set<string>;
  readonly diagnostics: Diagnostic[];
  readonly lost: { manifest: boolean; document: boolean; readonly prompts: string[] };
  readonly guard?: FileGuard | undefined;
  readonly view?: FolderView | undefined;
  /**
   * The bytes are valid during the call. `stats`: the state of the file before it was read, where known. Returns the sha256 of the file,
   * where known.
   */
  seen(file: string, bytes: Uint8Array, stats?: Stats): string | undefined;
}

/** A text with its bytes, which are valid until the next read. */
interface TextRead {
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly digest: string | undefined;
}

// Thousands of short-lived buffers cost more time and memory than the files.
const scratch = Buffer.allocUnsafeSlow(64 * 1024);

/** The text of a file of the skill; undefined, with a diagnostic, if it cannot be read. */
export function readText(file: string, maxBytes: number, { files, diagnostics, seen, guard }: Reading): TextRead | undefined {
  files.add(file);
  const read = readTextFile(file, maxBytes, guard, scratch);
  if (!read.ok) {
    diagnostics.push(read.diagnostic);
    return undefined;
  }
  const { bytes } = read;
  const digest = seen(file, bytes, read.stats);
  const { text, diagnostics: found } = decodeText(bytes, file);
  diagnostics.push(...found);
  return { text, bytes, digest };
}

/** Reads the tool JSON of an entry, from its file or from the manifest. Problems become diagnostics. */
export function readToolJson(
  entry: Exclude<ToolEntry, { kind: "module" }>,
  seen: (file: string, bytes: Uint8Array) => void,
  guard?: FileGuard,
): { readonly tool?: ToolJson; readonly diagnostics: readonly Diagnostic[] } {
  if (entry.kind === "inline") return toToolJson(entry.value, entry.file);
  const read = readTextFile(entry.file, maxJsonBytes, guard);
  if (!read.ok) return { diagnostics: [read.diagnostic] };
  seen(entry.file, read.bytes);
  const { text, diagnostics } = decodeText(read.bytes, entry.file);
  const parsed = parseToolJson(text, entry.file);
  return { ...parsed, diagnostics: [...diagnostics, ...parsed.diagnostics] };
}

import { readdirSync, realpathSync } from "node:fs";
import { basename, join, relative, resolve, sep } from "node:path";
import type { Logger } from "../../base/logger.ts";
import { fieldsReader, mustBe, readFlag, readTexts } from "../../base/read-fields.ts";
import { findHidden, hiddenWords, withoutHidden } from "../../base/untrusted-text.ts";
import { parseFrontMatter } from "../../formats/skills/front-matter.ts";
import { isInside } from "../../io/confine-path.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { locationOf } from "../../trust/trust-file.ts";
import { escaped } from "./system-prompt.ts";

/** Where a file of instructions was found. */
export type InstructionLocation = "user" | "repository" | "working-directory" | "extra";

/** What a project, a user or a team wants of every agent, as a file says it. */
export interface InstructionFile {
  readonly path: string;
  readonly location: InstructionLocation;
  /** As it is shown: relative to where it was looked for. */
  readonly label: string;
  /** Without its front matter. */
  readonly content: string;
  readonly description: string | undefined;
  /** Globs of the files that it is about; none: all. */
  readonly applyTo: readonly string[];
}

/** A folder that is searched, and what for. */
export interface InstructionPlace {
  readonly directory: string;
  readonly location: InstructionLocation;
}

/** Files that agents of the field read, in each place. */
export const instructionFileNames: readonly string[] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"];
/** A folder of further ones, each `*.instructions.md`. */
export const instructionFolder = ".github/instructions";

const maxBytes = 256 * 1024;
const maxFiles = 200;

/** The places that are searched for a working directory: the root of its repository, itself, the user's own, and others that were named. */
export function instructionPlaces(
  workingDirectory: string,
  others: { readonly userDirectory?: string | undefined; readonly directories?: readonly string[] | undefined } = {},
): readonly InstructionPlace[] {
  const root = locationOf(workingDirectory);
  const places: InstructionPlace[] = [];
  if (others.userDirectory !== undefined) places.push({ directory: others.userDirectory, location: "user" });
  places.push({ directory: root, location: "repository" });
  if (root !== workingDirectory) places.push({ directory: workingDirectory, location: "working-directory" });
  for (const directory of others.directories ?? []) places.push({ directory, location: "extra" });
  return places;
}

/**
 * The files of instructions in places, in order; one that says the same as another before it is left out. A file of a project
 * that is a link out of it is left out too, and `onOutside` gets its path: what it contains would be sent to a model without
 * anybody being asked. `onHidden` gets the path of a file with characters that people cannot see, which its content does not have.
 * Never throws.
 */
export function findInstructionFiles(
  places: readonly InstructionPlace[],
  onOutside: (path: string) => void = () => {},
  onHidden: (path: string, what: string) => void = () => {},
): readonly InstructionFile[] {
  const found: InstructionFile[] = [];
  const seen = new Set<string>();
  for (const { directory, location } of places) {
    const isOwn = location === "user" || location === "extra";
    const root = isOwn ? undefined : locationOf(directory);
    for (const path of candidatesIn(directory, location)) {
      if (root !== undefined && leadsOut(path, root)) {
        onOutside(path);
        continue;
      }
      const file = found.length < maxFiles ? read(path, directory, location, onHidden) : undefined;
      if (file === undefined || seen.has(file.content)) continue;
      seen.add(file.content);
      found.push(file);
    }
  }
  return found;
}

/** What of them stands in a system message, behind what the organisation says. */
function customInstructions(files: readonly InstructionFile[], organization: string | undefined): string {
  const own = organization === undefined || organization.trim() === "" ? [] : [`<organization>\n${organization.trim()}\n</organization>`];
  return [...own, ...files.map(toBlock)].join("\n");
}

function toBlock({ label, content, applyTo }: InstructionFile): string {
  const about = applyTo.length === 0 ? "" : ` applies-to="${escaped(applyTo.join(", ")).replaceAll('"', "'")}"`;
  return `<instructions from="${escaped(label).replaceAll('"', "'")}"${about}>\n${content}\n</instructions>`;
}

function candidatesIn(directory: string, location: InstructionLocation): readonly string[] {
  const names = location === "user" || location === "extra" ? [...instructionFileNames, "copilot-instructions.md"] : instructionFileNames;
  const folders = location === "extra" ? [instructionFolder, "."] : [instructionFolder];
  return [
    ...names.map((name) => join(directory, name)),
    ...folders.flatMap((folder) => instructionsIn(join(directory, folder), folder !== ".")),
  ];
}

function instructionsIn(folder: string, recursive: boolean): readonly string[] {
  try {
    const names = readdirSync(folder, { recursive, encoding: "utf8" }).filter((name) => name.endsWith(".instructions.md"));
    return names.sort().map((name) => join(folder, name));
  } catch {
    // Most projects have no such folder.
    return [];
  }
}

function leadsOut(path: string, root: string): boolean {
  try {
    return !isInside(root, realpathSync.native(path));
  } catch {
    // Most of the candidates do not exist.
    return false;
  }
}

function read(
  path: string,
  directory: string,
  location: InstructionLocation,
  onHidden: (path: string, what: string) => void,
): InstructionFile | undefined {
  const file = readTextFile(path, maxBytes);
  if (!file.ok) return undefined;
  const hidden = findHidden(file.text);
  if (hidden !== undefined) onHidden(path, hiddenWords(hidden));
  const { data, body } = parseFrontMatter(file.text);
  const content = body.trim();
  if (content === "") return undefined;
  const { applyTo, description } = data;
  return {
    path,
    location,
    label: relative(directory, path).split(sep).join("/") || basename(path),
    content,
    description: typeof description === "string" ? withoutHidden(description) : undefined,
    applyTo: toGlobs(applyTo),
  };
}

function toGlobs(value: unknown): readonly string[] {
  const list = Array.isArray(value) ? value.map(String) : typeof value === "string" ? value.split(",") : [];
  const globs = list.map((glob) => glob.trim()).filter((glob) => glob !== "");
  return globs.includes("**") ? [] : globs;
}

export interface CustomInstructionOptions {
  /** Whether files such as `AGENTS.md` and `.github/copilot-instructions.md` of the project are read. Default: false. */
  readonly files?: boolean | undefined;
  /** More folders that are searched for such files. */
  readonly directories?: readonly string[] | undefined;
  /** The folder of the user's own. */
  readonly userDirectory?: string | undefined;
  /** What the organisation says; it stands before all files. */
  readonly organization?: string | undefined;
}

export const readCustomInstructions: (value: unknown, path: string) => CustomInstructionOptions = fieldsReader<CustomInstructionOptions>({
  files: readFlag,
  directories: readTexts,
  userDirectory: readAnyText,
  organization: readAnyText,
});

function readAnyText(value: unknown, path: string): string {
  return typeof value === "string" ? value : mustBe(path, "a string");
}

/** The files that a session's options name, as they are now. */
export function instructionFilesFor(
  options: CustomInstructionOptions,
  workingDirectory: string,
  onOutside?: (path: string) => void,
  onHidden?: (path: string, what: string) => void,
): readonly InstructionFile[] {
  if (options.files !== true) return [];
  const directories = options.directories?.map((directory) => resolve(workingDirectory, directory));
  const places = instructionPlaces(workingDirectory, { userDirectory: options.userDirectory, directories });
  return findInstructionFiles(places, onOutside, onHidden);
}

/** The instructions for a session's model; read again for each message of a user, not for each request. */
export class CustomInstructions {
  readonly #options: () => { readonly options: CustomInstructionOptions; readonly workingDirectory: string };
  readonly #log: Logger;
  readonly #warned = new Set<string>();
  #of: CustomInstructionOptions | undefined;
  #text = "";

  constructor(options: () => { readonly options: CustomInstructionOptions; readonly workingDirectory: string }, log: Logger) {
    this.#options = options;
    this.#log = log;
  }

  get text(): string {
    const { options } = this.#options();
    if (options !== this.#of) this.refresh();
    return this.#text;
  }

  refresh(): void {
    const { options, workingDirectory } = this.#options();
    this.#of = options;
    this.#text = customInstructions(
      instructionFilesFor(
        options,
        workingDirectory,
        (path) => this.#warnOnce(path, linkOutside),
        (path, what) => this.#warnOnce(path, `An instruction file contains ${what}. ${hiddenInstructions}`),
      ),
      options.organization,
    );
  }

  #warnOnce(path: string, message: string): void {
    const key = `${path} ${message}`;
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    this.#log.warning(message, { path });
  }
}

const linkOutside =
  "An instruction file is a symbolic link that points out of the project, so it is not read. Copy the file into the project.";
const hiddenInstructions = "People cannot see these characters, so they are removed before the model reads the file. Delete them.";

import { resolve } from "node:path";
import type { Logger } from "../../base/logger.ts";
import { fieldsReader, mustBe, readFlag, readTexts } from "../../base/read-fields.ts";
import { customInstructions, findInstructionFiles, type InstructionFile, instructionPlaces } from "./instruction-files.ts";

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
  return typeof value === "string" ? value : mustBe(path, "a text");
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

/** What a session's model is told of all that; looked up anew when a message of a user comes, not with every request. */
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
        (path, what) => this.#warnOnce(path, `A file of instructions has ${what}. ${hiddenInstructions}`),
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

const linkOutside = "A file of instructions is a link that leads out of the project, so it is not read. Copy the file into the project.";
const hiddenInstructions = "People do not see these, so the model does not get them. Delete them.";

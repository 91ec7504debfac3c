import { replaceOnce } from "../operations/edit-text.ts";
import { passageDiff } from "../operations/unified-diff.ts";
import type { Refusal } from "../workspace-tool.ts";
import type { DraftedFiles, EditTool } from "./edit-tool.ts";
import { editedText, emptyOldText, identicalText, notFoundText, severalText } from "./editor-texts.ts";

interface Replacement {
  readonly filePath: string;
  readonly oldString: string;
  readonly newString: string;
}

interface ManyArgs {
  readonly replacements: readonly Replacement[];
}

const properties = {
  filePath: { type: "string", description: "The absolute path of the file to edit." },
  oldString: {
    type: "string",
    description:
      "The exact text to replace, including whitespace and line breaks. It must occur exactly once in the file: include at least 3 lines before and after. Empty only if the file is empty.",
  },
  newString: { type: "string", description: "The exact replacement text." },
  explanation: { type: "string", description: "A short explanation of the replacement." },
} as const;

const required = ["filePath", "oldString", "newString"] as const;

export const replaceStringTool: EditTool<Replacement> = {
  name: "replace_string_in_file",
  description: "Replaces one passage of a file. Each call replaces exactly one occurrence; for several, use multi_replace_string.",
  parameters: { type: "object", properties, required },
  paths: ({ filePath }) => [filePath],
  draft: replace,
  sketch: sketchOf,
  done: (changes) => editedText(changes.map(({ place }) => place.path)),
};

export const multiReplaceTool: EditTool<ManyArgs> = {
  name: "multi_replace_string",
  description:
    "Makes several replacements in one or more files, in order: each applies to the result of the previous one. Either all are made or, if one fails, none.",
  parameters: {
    type: "object",
    properties: {
      explanation: { type: "string", description: "A short explanation of the replacements." },
      replacements: {
        type: "array",
        description: "The replacements, in the order in which to apply them.",
        items: { type: "object", properties, required },
        minItems: 1,
        maxItems: 500,
      },
    },
    required: ["replacements"],
  },
  paths: ({ replacements }) => [...new Set(replacements.map(({ filePath }) => filePath))],
  async draft({ replacements }, files) {
    for (const [index, replacement] of replacements.entries()) {
      const refused = await replace(replacement, files);
      if (refused !== undefined) return { refusal: `Replacement ${index + 1} of ${replacements.length}: ${refused.refusal}` };
    }
    return undefined;
  },
  sketch: ({ replacements }) => replacements.map(sketchOf).join("\n"),
  done: (changes, { replacements }) =>
    `Applied ${replacements.length} replacements.\n${editedText(changes.map(({ place }) => place.path))}`,
};

function sketchOf({ filePath, oldString, newString }: Replacement): string {
  return passageDiff(filePath, oldString, newString);
}

async function replace({ filePath, oldString, newString }: Replacement, files: DraftedFiles): Promise<Refusal | undefined> {
  const { path } = files.place(filePath);
  if (oldString === newString) return { refusal: identicalText(path) };
  const read = await files.read(filePath);
  if ("refusal" in read) return read;
  const { text } = read;
  if (oldString === "") return text === "" ? files.write(filePath, newString) : { refusal: emptyOldText(path) };
  const edit = replaceOnce(text, passageIn(text, oldString), newString);
  if (edit.kind === "ambiguous") return { refusal: severalText(path, edit.count) };
  if (edit.kind === "missing") return { refusal: notFoundText(path, lineOfLike(text, oldString)) };
  return files.write(filePath, edit.text);
}

/** Models end a passage with a line break even if the last line of the file has none. */
function passageIn(text: string, passage: string): string {
  const shorter = passage.replace(/\r?\n$/, "");
  return !text.includes(passage) && shorter !== "" && text.endsWith(shorter) ? shorter : passage;
}

/** The line of the only passage that differs just in white space around its lines. */
function lineOfLike(text: string, passage: string): number | undefined {
  const lines = text.split("\n").map((line) => line.trim());
  const wanted = passage
    .trim()
    .split("\n")
    .map((line) => line.trim());
  const places: number[] = [];
  for (let at = 0; at + wanted.length <= lines.length && places.length < 2; at++) {
    if (wanted.every((line, index) => lines[at + index] === line)) places.push(at);
  }
  return places.length === 1 ? places[0]! + 1 : undefined;
}

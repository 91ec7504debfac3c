import { fitLineBreaks } from "../operations/edit-text.ts";
import { isElided, mergeElided } from "../operations/merge-elided.ts";
import { passageDiff } from "../operations/unified-diff.ts";
import type { EditTool } from "./edit-tool.ts";
import { editedText, elidedNewText, unchangedText, unclearText } from "./editor-texts.ts";

interface InsertArgs {
  readonly filePath: string;
  readonly code: string;
}

export const insertEditTool: EditTool<InsertArgs> = {
  name: "insert_edit_into_file",
  description: `Changes or creates a file. Call it once per file, even for several changes.
Code without "...existing code..." comments is the complete new content of the file. With them it contains only what changes: each such comment, on its own line, stands for unchanged lines.
Repeat at least one unchanged line directly before or after each change, exactly as in the file including indentation: it locates the change. Everything between two repeated lines without a comment between them is replaced. For example:
class Person {
  // ...existing code...
  constructor(name: string, age: number) {
    this.name = name;
    this.age = age;
  }
  // ...existing code...
}`,
  parameters: {
    type: "object",
    properties: {
      explanation: { type: "string", description: "A short explanation of the edit." },
      filePath: { type: "string", description: "The absolute path of the file to edit." },
      code: {
        type: "string",
        description: "The complete content, or the changes with comments such as // ...existing code... for everything else.",
      },
    },
    required: ["filePath", "code"],
  },
  paths: ({ filePath }) => [filePath],
  async draft({ filePath, code }, files) {
    const found = await files.find(filePath);
    if ("refusal" in found) return found;
    const { text } = found;
    const { path } = files.place(filePath);
    if (text === undefined) return isElided(code) ? { refusal: elidedNewText(path) } : files.write(filePath, code);
    const merged = mergeElided(text, code);
    if (merged.kind === "unclear") return { refusal: unclearText(path, merged.why) };
    return files.write(filePath, merged.kind === "whole" ? fitLineBreaks(code, text) : merged.text);
  },
  sketch: ({ filePath, code }) => passageDiff(filePath, "", code),
  done: (changes, { filePath }) => {
    const [change] = changes;
    return change === undefined ? unchangedText(filePath) : editedText([change.place.path]);
  },
};

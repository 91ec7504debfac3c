import { fitLineBreaks } from "../operations/edit-text.ts";
import { diffOfTexts } from "../operations/line-diff.ts";
import { isElided, mergeElided } from "../operations/merge-elided.ts";
import type { EditTool } from "./edit-tool.ts";
import { editedText, elidedNewText, unchangedText, unclearText } from "./texts.ts";

interface InsertArgs {
  readonly filePath: string;
  readonly code: string;
}

export const insertEditTool: EditTool<InsertArgs> = {
  name: "insert_edit_into_file",
  description: `Changes a file, or creates it. Use it once for a file, also for several changes.
Code without comments "...existing code..." is the whole content that the file is to have. With them it need only hold what changes: each such comment, on a line of its own, stands for lines that stay as they are.
Repeat at least one unchanged line right before or after each change, as it stands in the file, indentation included: it says where the change belongs. What the file has between two repeated lines, with no comment between them, is replaced. For example:
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
      code: { type: "string", description: "The whole content, or the changes with comments such as // ...existing code... for all else." },
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
  sketch: ({ filePath, code }) => diffOfTexts(filePath, "", code),
  done: (changes, { filePath }) => {
    const [change] = changes;
    return change === undefined ? unchangedText(filePath) : editedText([change.place.path]);
  },
};

import type { EditTool } from "./edit-tool.ts";
import { createdText, existsText } from "./editor-texts.ts";

interface CreateArgs {
  readonly filePath: string;
  readonly content: string;
}

export const createFileTool: EditTool<CreateArgs> = {
  name: "create_file",
  description: "Creates a file and its parent folders. An existing file that is not empty is not changed.",
  parameters: {
    type: "object",
    properties: {
      filePath: { type: "string", description: "The absolute path of the file to create." },
      content: { type: "string", description: "The complete content." },
    },
    required: ["filePath", "content"],
  },
  paths: ({ filePath }) => [filePath],
  async draft({ filePath, content }, files) {
    const found = await files.find(filePath);
    if ("refusal" in found) return found;
    return found.text ? { refusal: existsText(files.place(filePath).path) } : files.write(filePath, content);
  },
  done: (changes, { filePath }) => createdText(changes[0]?.place.path ?? filePath),
};

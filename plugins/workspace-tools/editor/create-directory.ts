import { stat } from "node:fs/promises";
import { FolderHandle } from "../operations/folder-handle.ts";
import { failure, placeFor, type WorkspaceTool } from "../workspace-tool.ts";

interface CreateDirectoryArgs {
  readonly dirPath: string;
}

export const createDirectoryTool: WorkspaceTool<CreateDirectoryArgs> = {
  name: "create_directory",
  description: "Creates a folder and its parent folders. Not needed before create_file, which creates them itself.",
  parameters: {
    type: "object",
    properties: { dirPath: { type: "string", description: "The absolute path of the folder to create." } },
    required: ["dirPath"],
  },
  overridesBuiltInTool: true,
  async describe({ dirPath }, call) {
    const found = await placeFor(dirPath, call, "write");
    if ("refusal" in found) return found;
    const { place } = found;
    const request = {
      kind: "write",
      intention: `Create the folder ${place.path}`,
      fileName: place.real,
      diff: "",
      canOfferSessionApproval: true,
    };
    return { request, places: [place] };
  },
  async run({ dirPath }, call) {
    const found = await placeFor(dirPath, call, "write");
    if ("refusal" in found) return failure(found.refusal);
    const { path, real } = found.place;
    try {
      const { folder, made } = await FolderHandle.make(real);
      await folder[Symbol.asyncDispose]();
      return made.length === 0 ? `Folder ${path} already exists.` : `Created folder ${path}`;
    } catch {
      // The error text of the system contains paths of the host.
      const isThere = (await stat(real).catch(() => undefined)) !== undefined;
      return failure(isThere ? `${path} already exists, and is a file.` : `Folder ${path} cannot be created.`);
    }
  },
};

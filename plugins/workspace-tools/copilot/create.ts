import { stat } from "node:fs/promises";
import { unifiedDiff } from "../operations/unified-diff.ts";
import type { FileWriter } from "../operations/write-files.ts";
import { failure, placeFor, type WorkspaceTool } from "../workspace-tool.ts";
import { createdText, existsText } from "./copilot-texts.ts";

interface CreateArgs {
  readonly path: string;
  readonly file_text: string;
}

/** Longer contents are not sent in addition to the diff. */
const maxContents = 100_000;

export function createCreateTool(writer: FileWriter): WorkspaceTool<CreateArgs> {
  return {
    name: "create",
    description: `Creates a file and its parent folders. An existing file is not changed: use edit for that.`,
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "Path of the new file, absolute or relative to the working directory." },
        file_text: { type: "string", description: "The complete text." },
      },
      required: ["path", "file_text"],
      additionalProperties: false,
    },
    metadata: { editingStyle: "edit" },
    async describe({ path, file_text }, call) {
      const found = await placeFor(path, call, "write");
      if ("refusal" in found) return found;
      const { place } = found;
      if (await exists(place.real)) return { refusal: existsText(place.path) };
      const request = {
        kind: "write",
        intention: `Create ${place.path}`,
        fileName: place.real,
        diff: unifiedDiff(place.path, undefined, file_text),
        ...(file_text.length <= maxContents && { newFileContents: file_text }),
        canOfferSessionApproval: true,
      };
      return { request, places: [place] };
    },
    async run({ path, file_text }, call) {
      const found = await placeFor(path, call, "write");
      if ("refusal" in found) return failure(found.refusal);
      const { place } = found;
      const creation = await writer.create(place, file_text);
      if (creation.kind === "exists") return failure(existsText(place.path));
      if (creation.kind === "failed") return failure(`File ${place.path} cannot be created.`);
      call.context.fileChanged(place.path, file_text, { before: null });
      return createdText(path, file_text.length);
    },
  };
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

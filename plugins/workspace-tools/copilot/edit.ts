import { faultText } from "../fault-texts.ts";
import { maxEditedBytes } from "../operations/open-file.ts";
import type { Place } from "../operations/places.ts";
import { encodeText } from "../operations/text-encoding.ts";
import { passageDiff, unifiedDiff } from "../operations/unified-diff.ts";
import { type EditFault, type FileEdit, type FileWriter, type Passage, type PlannedEdit, planEdit } from "../operations/write-files.ts";
import { failure, placeFor, type WorkspaceTool } from "../workspace-tool.ts";
import { ambiguousText, editedText, noPassageText } from "./copilot-texts.ts";

interface EditArgs {
  readonly path: string;
  readonly old_str?: string;
  readonly new_str?: string;
}

export function createEditTool(writer: FileWriter): WorkspaceTool<EditArgs> {
  return {
    name: "edit",
    description: `Replaces one passage of a text file.
- old_str must match the file exactly, including whitespace and line breaks, and occur once: include surrounding lines if it does not.
- Without new_str the passage is removed.
- Several edits in one message are applied in order.`,
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "Path of the file, absolute or relative to the working directory." },
        old_str: { type: "string", description: "The passage to replace, without line numbers. Empty only if the file is empty." },
        new_str: { type: "string", description: "The replacement." },
      },
      required: ["path"],
      additionalProperties: false,
    },
    metadata: { editingStyle: "edit" },
    async describe(args, call) {
      const found = await placeFor(args.path, call, "write");
      if ("refusal" in found) return found;
      const { place } = found;
      const planned = await planEdit(place, passageOf(args));
      const request = {
        kind: "write",
        intention: `Edit ${place.path}`,
        fileName: place.real,
        // An edit that does not match yet may match after an earlier one was made, so permission is requested anyway.
        diff: diffOf(place, planned, passageOf(args)),
        ...(planned.kind === "edited" && planned.text.length <= maxContents && { newFileContents: planned.text }),
        canOfferSessionApproval: true,
      };
      return { request, places: [place] };
    },
    async run(args, call) {
      const found = await placeFor(args.path, call, "write");
      if ("refusal" in found) return failure(found.refusal);
      const { place } = found;
      const edit = await writer.edit(place, passageOf(args));
      if (edit.kind !== "edited") return failure(editText(edit, place, args));
      call.context.fileChanged(place.path, edit.text, { before: encodeText(edit.before.text, edit.before) });
      return editedText(args.path);
    },
  };
}

/** Longer contents are not sent in addition to the diff. */
const maxContents = 100_000;

function passageOf({ old_str = "", new_str = "" }: EditArgs): Passage {
  return { old: old_str, new: new_str };
}

function diffOf({ path }: Place, planned: PlannedEdit, passage: Passage): string {
  if (planned.kind === "edited") return unifiedDiff(path, planned.before.text, planned.text);
  return passageDiff(path, passage.old, passage.new);
}

function editText(edit: Exclude<FileEdit, { kind: "edited" }>, place: Place, { old_str }: EditArgs): string {
  if (edit.kind === "ambiguous") return ambiguousText(place.path, edit.count);
  if (edit.fault === "missing-passage" && !old_str) return `old_str is needed: ${place.path} is not empty. Name the passage to replace.`;
  return faultTexts[edit.fault]?.(place.path) ?? faultText(edit.fault as "missing", place);
}

const faultTexts: { readonly [F in EditFault]?: (path: string) => string } = {
  "missing-passage": noPassageText,
  "too-large": (path) => `File ${path} is larger than the ${maxEditedBytes / 1024 / 1024} MB that can be edited.`,
  binary: (path) => `File ${path} is binary and cannot be edited.`,
  encoding: (path) => `File ${path} is not valid UTF-8, and editing it would damage it.`,
  unwritable: (path) => `File ${path} cannot be written.`,
};

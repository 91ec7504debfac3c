import { applyHunks } from "../operations/apply-hunks.ts";
import type { FileChange } from "../operations/draft.ts";
import { isPatchFault, type PatchStep, parsePatch } from "../operations/patch-format.ts";
import type { Refusal } from "../workspace-tool.ts";
import type { DraftedFiles, EditTool } from "./edit-tool.ts";
import { nothingChanged } from "./editor-texts.ts";

interface PatchArgs {
  readonly input: string;
}

export const applyPatchTool: EditTool<PatchArgs> = {
  name: "apply_patch",
  description: `Applies a patch to files: all of it or, if a part does not apply, none of it. The format:
*** Begin Patch
*** Update File: /path/to/app.py
@@ def greet():
 def greet():
-    print("Hi")
+    print("Hello, world!")
*** Add File: /path/to/new.txt
+Every line of a new file begins with a plus.
*** Delete File: /path/to/old.txt
*** End Patch
Lines of a hunk begin with a space (kept), "-" (removed) or "+" (added). Show 3 lines of context around each change; if they occur several times in the file, precede them with "@@" and an earlier line, with several such lines if needed. "*** Move to: <path>" right after "*** Update File:" renames the file; "*** End of File" ends a hunk at the last lines of the file. Do not use line numbers.`,
  parameters: {
    type: "object",
    properties: {
      input: { type: "string", description: "The patch, from *** Begin Patch to *** End Patch." },
      explanation: { type: "string", description: "A short explanation of what the patch does." },
    },
    required: ["input"],
  },
  paths({ input }) {
    const steps = parsePatch(input);
    if (isPatchFault(steps)) return { refusal: `The patch cannot be read: ${steps.fault}. ${nothingChanged}` };
    return [
      ...new Set(steps.flatMap((step) => (step.kind === "update" && step.moveTo !== undefined ? [step.path, step.moveTo] : [step.path]))),
    ];
  },
  async draft({ input }, files) {
    const steps = parsePatch(input);
    if (isPatchFault(steps)) return { refusal: steps.fault };
    for (const step of steps) {
      const refused = await draftStep(step, files);
      if (refused !== undefined) return { refusal: `Applying the patch failed: ${refused.refusal}${ending(refused.refusal)}` };
    }
    return undefined;
  },
  sketch: ({ input }) => input.slice(0, maxSketch),
  done: (changes) => (changes.length === 0 ? "No changes were applied." : listOf(changes)),
};

const maxSketch = 100_000;

function ending(text: string): string {
  return text.endsWith(nothingChanged) ? "" : ` ${nothingChanged}`;
}

function draftStep(step: PatchStep, files: DraftedFiles): Promise<Refusal | undefined> {
  if (step.kind === "delete") return files.remove(step.path);
  return step.kind === "add" ? add(step, files) : update(step, files);
}

async function add({ path, text }: Extract<PatchStep, { kind: "add" }>, files: DraftedFiles): Promise<Refusal | undefined> {
  const found = await files.find(path);
  if ("refusal" in found) return found;
  return found.text ? taken(path, files) : files.write(path, text);
}

async function update(step: Extract<PatchStep, { kind: "update" }>, files: DraftedFiles): Promise<Refusal | undefined> {
  const { path, moveTo, hunks } = step;
  const read = await files.read(path);
  if ("refusal" in read) return read;
  const applied = applyHunks(read.text, hunks);
  if (!applied.ok) return { refusal: `${applied.fault} The file is ${files.place(path).path}.` };
  if (moveTo === undefined || files.place(moveTo).real === files.place(path).real) return files.write(path, applied.text);
  const target = await files.find(moveTo);
  if ("refusal" in target) return target;
  return target.text === undefined ? files.move(path, moveTo, applied.text) : taken(moveTo, files);
}

function taken(path: string, files: DraftedFiles): Refusal {
  return { refusal: `File ${files.place(path).path} already exists.` };
}

function listOf(changes: readonly FileChange[]): string {
  const list = (title: string, chosen: readonly FileChange[]): string =>
    chosen.length === 0 ? "" : `${title} files:\n${chosen.map(({ place }) => `  - ${place.path}`).join("\n")}`;
  const parts = [
    list(
      "Edited",
      changes.filter(({ before, after }) => before !== undefined && after !== undefined),
    ),
    list(
      "Created",
      changes.filter(({ before }) => before === undefined),
    ),
    list(
      "Deleted",
      changes.filter(({ after }) => after === undefined),
    ),
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

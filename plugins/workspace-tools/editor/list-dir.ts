import { faultText } from "../fault-texts.ts";
import { listFolder } from "../operations/list-folder.ts";
import { openFile } from "../operations/open-file.ts";
import { failure, placeFor, type WorkspaceTool } from "../workspace-tool.ts";

interface ListArgs {
  readonly path: string;
}

const maxNames = 1_000;

export const listDirTool: WorkspaceTool<ListArgs> = {
  name: "list_dir",
  description: "Lists the entries of a folder, one per line. Names of folders end in /.",
  parameters: {
    type: "object",
    properties: { path: { type: "string", description: "The absolute path of the folder to list." } },
    required: ["path"],
  },
  annotations: { readOnlyHint: true },
  overridesBuiltInTool: true,
  async describe({ path }, call) {
    const found = await placeFor(path, call, "read");
    if ("refusal" in found) return found;
    return { request: { kind: "read", intention: `List ${found.place.path}`, path: found.place.real }, places: [found.place] };
  },
  async run({ path }, call) {
    const found = await placeFor(path, call, "read");
    if ("refusal" in found) return failure(found.refusal);
    const { place } = found;
    const listing = await listFolder(place, maxNames);
    if (listing === undefined) {
      const opened = await openFile(place);
      if (opened.ok) await opened.file.close();
      return failure(opened.ok ? `${place.path} is a file. Read it with read_file.` : faultText(faultOf(opened.fault), place));
    }
    const { names, folders, isPart } = listing;
    if (names.length === 0) return "Folder is empty";
    const more = isPart ? [`[There are more than these ${maxNames} names. Use file_search to find others.]`] : [];
    return [...names.map((name) => (folders.has(name) ? `${name}/` : name)), ...more].join("\n");
  },
};

/** A folder that could not be listed cannot be opened. */
function faultOf<F extends string>(fault: F): Exclude<F, "folder"> | "unreadable" {
  return fault === "folder" ? "unreadable" : (fault as Exclude<F, "folder">);
}

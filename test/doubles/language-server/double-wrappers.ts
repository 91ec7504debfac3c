import { type CallEnd, type CallPlace, ended } from "./call-end.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

type Invoke = (name: string, input: object) => Promise<Json>;

/** The editor's tools that the server runs itself: it lets the editor write the result, and reports it to the model. */
export async function runWrapper(name: string, input: Json, { documents, complete }: CallPlace, invoke: Invoke): Promise<CallEnd> {
  const { filePath, explanation } = input;
  if (name === "create_file") {
    const created = ended(await invoke(name, { filePath, content: input.content }));
    return withText(created, `<file_created path="${filePath}">\n${created.text}\n</file_created>`);
  }
  const edit = (path: string, code: string): Promise<Json> => invoke("insert_edit_into_file", { filePath: path, code, explanation });
  if (name === "insert_edit_into_file") {
    const code = await complete(`Apply the edit to ${documents.read(filePath)}: ${input.code}`);
    const edited = ended(await edit(filePath, code));
    return withText(edited, `<file_after_edit path="${filePath}">\n${edited.text}\n</file_after_edit>`);
  }
  if (name === "replace_string_in_file") {
    const code = documents.read(filePath).replace(input.oldString, () => input.newString);
    return withText(ended(await edit(filePath, code)), `The following files were successfully edited:\n${filePath}`);
  }
  const { path, code } = patched(input.input, (file) => documents.read(file));
  return withText(ended(await edit(path, code)), `Edited files:\n  - ${path}`);
}

function withText(end: CallEnd, text: string): CallEnd {
  return end.status === "completed" ? { ...end, text } : end;
}

/** A patch of one hunk in one file. */
function patched(patch: string, read: (file: string) => string): { readonly path: string; readonly code: string } {
  const lines = patch.split("\n");
  const path = lines.find((line) => line.startsWith("*** Update File: "))!.slice("*** Update File: ".length);
  const hunk = lines.slice(lines.findIndex((line) => line.startsWith("@@")) + 1, -1);
  const side = (mark: string): string =>
    hunk
      .filter((line) => line.startsWith(" ") || line.startsWith(mark))
      .map((line) => line.slice(1))
      .join("\n");
  return { path, code: read(path).replace(side("-"), () => side("+")) };
}

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** The documents that are open in the editor, by URI. */
export class OpenDocuments {
  readonly #texts = new Map<string, string>();

  hear(method: string, { textDocument, contentChanges }: Json): void {
    if (method === "textDocument/didOpen") this.#texts.set(textDocument.uri, textDocument.text);
    if (method === "textDocument/didChange") this.#texts.set(textDocument.uri, contentChanges.at(-1).text);
    if (method === "textDocument/didClose") this.#texts.delete(textDocument.uri);
  }

  /** An open document takes precedence over the file on disk. */
  read(path: string): string {
    return this.#texts.get(pathToFileURL(path).href) ?? readFileSync(path, "utf8");
  }
}

/** Runs one of the server's own tools. Tools that no scenario calls are not implemented. */
export function runOwnTool(name: string, input: Json, documents: OpenDocuments): string {
  if (name === "read_file") return documents.read(input.filePath.startsWith("file:") ? fileURLToPath(input.filePath) : input.filePath);
  if (name === "list_dir") return readdirSync(input.path).join("\n");
  throw new Error(`This double of the server has no ${name}.`);
}

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** The documents that the editor has open, by their address. */
export class OpenDocuments {
  readonly #texts = new Map<string, string>();

  hear(method: string, { textDocument, contentChanges }: Json): void {
    if (method === "textDocument/didOpen") this.#texts.set(textDocument.uri, textDocument.text);
    if (method === "textDocument/didChange") this.#texts.set(textDocument.uri, contentChanges.at(-1).text);
    if (method === "textDocument/didClose") this.#texts.delete(textDocument.uri);
  }

  /** What is open is read before what is on the disk. */
  read(path: string): string {
    return this.#texts.get(pathToFileURL(path).href) ?? readFileSync(path, "utf8");
  }
}

/** Runs one of the server's own tools. Those that no scenario calls are not here. */
export function runOwnTool(name: string, input: Json, documents: OpenDocuments): string {
  if (name === "read_file") return documents.read(input.filePath.startsWith("file:") ? fileURLToPath(input.filePath) : input.filePath);
  if (name === "list_dir") return readdirSync(input.path).join("\n");
  throw new Error(`This double of the server has no ${name}.`);
}

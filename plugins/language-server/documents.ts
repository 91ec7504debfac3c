import { readFile } from "node:fs/promises";
import { extname, isAbsolute, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Sends a notification to the server. */
export type Notify = (method: string, params: object) => void;

interface Document {
  readonly languageId: string;
  version: number;
  text: string;
  /** It shows the content of a file, not text that a user is typing. */
  followsFile: boolean;
}

/**
 * The documents that are open on the server, which reads them instead of the disk. Versions start at 1; texts are sent as
 * a whole.
 */
export class Documents {
  readonly #folder: string;
  readonly #open = new Map<string, Document>();
  #notify: Notify;

  constructor(folder: string, notify: Notify) {
    this.#folder = folder;
    this.#notify = notify;
  }

  /** Opens a document, or replaces the text of an open one. */
  open(uri: string, languageId: string, text: string, followsFile = false): void {
    const known = this.#open.get(uri);
    if (known !== undefined) {
      known.followsFile = followsFile;
      this.#change(uri, known, text);
      return;
    }
    const document = { languageId, version: 1, text, followsFile };
    this.#open.set(uri, document);
    this.#tellOpened(uri, document);
  }

  /** Updates the content of a file. `path`: absolute, relative to the working directory, or the URI of a document. */
  sync(path: string, content: string, languageId?: string): void {
    const uri = this.uriOf(path);
    // A language is given for a document in an editor, not for a written file.
    this.open(uri, languageId ?? languageOf(uri), content, languageId === undefined && uri.startsWith("file:"));
  }

  close(uri: string): void {
    if (this.#open.delete(uri)) this.#notify("textDocument/didClose", { textDocument: { uri } });
  }

  /** Reads the files again, since a program may have changed one. */
  async refresh(): Promise<void> {
    const followed = Array.from(this.#open).filter(([, { followsFile }]) => followsFile);
    await Promise.all(
      followed.map(async ([uri, document]) => {
        const content = await readFile(fileURLToPath(uri), "utf8").catch(() => undefined);
        if (this.#open.get(uri) !== document) return;
        if (content === undefined) this.close(uri);
        else if (content !== document.text) this.#change(uri, document, content);
      }),
    );
  }

  /** A new server does not know any of them yet. */
  moveTo(notify: Notify): void {
    this.#notify = notify;
    for (const [uri, document] of this.#open) {
      document.version = 1;
      this.#tellOpened(uri, document);
    }
  }

  uriOf(path: string): string {
    if (!isAbsolute(path) && /^[a-z][a-z0-9+.-]+:/i.test(path)) return path;
    return pathToFileURL(resolve(this.#folder, path)).href;
  }

  #change(uri: string, document: Document, text: string): void {
    document.version++;
    document.text = text;
    this.#notify("textDocument/didChange", { textDocument: { uri, version: document.version }, contentChanges: [{ text }] });
  }

  #tellOpened(uri: string, { languageId, version, text }: Document): void {
    this.#notify("textDocument/didOpen", { textDocument: { uri, languageId, version, text } });
  }
}

const languages: Readonly<Record<string, string>> = {
  ".c": "c",
  ".cjs": "javascript",
  ".cpp": "cpp",
  ".cs": "csharp",
  ".css": "css",
  ".cts": "typescript",
  ".feature": "gherkin",
  ".go": "go",
  ".h": "c",
  ".html": "html",
  ".java": "java",
  ".js": "javascript",
  ".json": "json",
  ".jsx": "javascriptreact",
  ".kt": "kotlin",
  ".md": "markdown",
  ".mjs": "javascript",
  ".mts": "typescript",
  ".php": "php",
  ".ps1": "powershell",
  ".py": "python",
  ".rb": "ruby",
  ".rs": "rust",
  ".sh": "shellscript",
  ".sql": "sql",
  ".swift": "swift",
  ".toml": "toml",
  ".ts": "typescript",
  ".tsx": "typescriptreact",
  ".xml": "xml",
  ".yaml": "yaml",
  ".yml": "yaml",
};

/** The language identifier that editors use for a file. */
function languageOf(path: string): string {
  return languages[extname(path).toLowerCase()] ?? "plaintext";
}

import type { Completion, CompletionContext, OfferContext } from "./prompt.ts";
import type { ToolOrigin } from "./tool.ts";

interface ResourceFacts {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** As in MCP: audience, priority, lastModified. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** A resource that a skill, plugin or program defines. */
export interface ResourceDefinition extends ResourceFacts {
  readonly uri: string;
  /** In bytes, if known. */
  readonly size?: number;
}

/** A template of resources, whose addresses have variables. */
export interface ResourceTemplateDefinition extends ResourceFacts {
  /** RFC 6570, such as `notes://{year}/{name}`. */
  readonly uriTemplate: string;
}

/** One of text and blob; a blob is base64. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
}

/** A resource that can be read by its URI. Frozen; independent of sessions. */
export interface Resource {
  readonly definition: ResourceDefinition;
  readonly origin: ToolOrigin;
  /** Changes with the definition, with the code behind it and, if known, with the content. */
  readonly revision: string;
  read(uri: string, context: OfferContext): Promise<readonly ResourceContents[]>;
  /** Reports changes until it is disposed of. Absent: only `revision` shows them. */
  watch?(uri: string, changed: () => void): Disposable | Promise<Disposable | AsyncDisposable>;
}

/** Resources whose URIs follow a template. */
export interface ResourceTemplate {
  readonly definition: ResourceTemplateDefinition;
  readonly origin: ToolOrigin;
  readonly revision: string;
  /** The variable values in a matching URI; undefined when it does not match. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  read(uri: string, context: OfferContext): Promise<readonly ResourceContents[]>;
  watch?(uri: string, changed: () => void): Disposable | Promise<Disposable | AsyncDisposable>;
  /** Suggestions for a variable. Absent: there are none. */
  complete?(variable: string, value: string, context: CompletionContext): Promise<Completion>;
}

/** The media type for the extension of a file name or URI; undefined when the extension is absent or unknown. */
export function mediaTypeOf(path: string): string | undefined {
  const name = path.replace(/[?#].*$/s, "").replace(/^.*[\\/]/s, "");
  const extension = /[^.]\.([A-Za-z0-9]{1,10})$/.exec(name)?.[1]?.toLowerCase();
  return extension === undefined ? undefined : byExtension.get(extension);
}

const byExtension: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "text/markdown": "md markdown",
    "text/plain": "txt text log",
    "text/csv": "csv",
    "text/html": "html htm",
    "text/css": "css",
    "text/javascript": "js mjs cjs jsx",
    "text/typescript": "ts mts cts tsx",
    "text/x-python": "py",
    "application/x-sh": "sh bash",
    "application/json": "json",
    "application/jsonl": "jsonl",
    "application/yaml": "yaml yml",
    "application/toml": "toml",
    "application/xml": "xml xsd",
    "application/sql": "sql",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "application/gzip": "gz",
    "application/wasm": "wasm",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "font/ttf": "ttf",
    "font/woff2": "woff2",
  }).flatMap(([type, extensions]) => extensions.split(" ").map((extension) => [extension, type] as const)),
);

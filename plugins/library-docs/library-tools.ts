import { readdirSync, readFileSync } from "node:fs";
import type { PermissionRequest, ToolContext, ToolLike } from "skillhost";
import type { Asked, Context7, FoundLibrary } from "./context7.ts";
import { findLibraries, type Library, libraries, libraryOfId } from "./libraries.ts";
import { cut, searchDocs } from "./search-docs.ts";

/** Maximum characters of one answer to the model. */
const maxChars = 4000;

export interface LibraryToolsOptions {
  /** Absent: bundled documentation only. */
  readonly context7?: Context7 | undefined;
  /** The folder of the bundled documents, with a folder for each library. */
  readonly documents: URL;
}

export function createLibraryTools(options: LibraryToolsOptions): readonly ToolLike[] {
  return [resolveTool(options), docsTool(options)];
}

function resolveTool({ context7 }: LibraryToolsOptions): ToolLike {
  return {
    name: "resolve_library_id",
    description: "Finds the id of a library by its name, for get_library_docs.",
    parameters: {
      type: "object",
      properties: {
        libraryName: { type: "string", minLength: 1, maxLength: 500, description: 'The name of the library, such as "playwright".' },
      },
      required: ["libraryName"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: context7 !== undefined },
    permission: ({ libraryName }: { libraryName: string }) =>
      context7 === undefined || findLibraries(libraryName).length > 0 ? null : lookUp(context7.searchAddress(libraryName)),
    async handler({ libraryName }: { libraryName: string }, _invocation: unknown, { invocation }: ToolContext) {
      const bundled = findLibraries(libraryName);
      if (bundled.length > 0) return bundled.map(bundledLine).join("\n");
      if (context7 === undefined) return failure(`No documentation of "${libraryName}" is bundled. ${bundledNames()}`);
      return resolvedText(libraryName, await context7.search(libraryName, invocation.signal));
    },
  } as ToolLike;
}

function docsTool({ context7, documents }: LibraryToolsOptions): ToolLike {
  return {
    name: "get_library_docs",
    description: "Returns the parts of a library's documentation that are relevant to a question. Get the id from resolve_library_id.",
    parameters: {
      type: "object",
      properties: {
        libraryId: { type: "string", minLength: 1, maxLength: 500, description: 'Such as "playwright" or "/microsoft/playwright".' },
        query: { type: "string", maxLength: 500, default: "", description: "What to look for, in a few words." },
      },
      required: ["libraryId"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: context7 !== undefined },
    permission: ({ libraryId, query = "" }: DocsArgs) =>
      context7?.isId(libraryId) && libraryOfId(libraryId) === undefined ? lookUp(context7.docsAddress(libraryId, query)) : null,
    async handler({ libraryId, query = "" }: DocsArgs, _invocation: unknown, { invocation }: ToolContext) {
      const library = libraryOfId(libraryId);
      if (library !== undefined) return searchDocs(documentsOf(library, documents), { query, maxChars });
      if (context7 === undefined) return failure(`No documentation of "${libraryId}" is bundled. ${bundledNames()}`);
      if (!context7.isId(libraryId)) return failure(`"${libraryId}" is not a library id. Call resolve_library_id with its name first.`);
      return docsText(libraryId, await context7.docs(libraryId, query === "" ? "overview" : query, invocation.signal));
    },
  } as ToolLike;
}

interface DocsArgs {
  readonly libraryId: string;
  readonly query?: string;
}

function lookUp(url: string): PermissionRequest {
  return { kind: "url", intention: "Look up a library's documentation", url };
}

/** Read at each call, since the files are small and an update of the package replaces them. */
function documentsOf({ id }: Library, documents: URL): readonly string[] {
  const folder = new URL(`${id}/`, documents);
  const names = readdirSync(folder).filter((name) => name.endsWith(".md"));
  return names.sort().map((name) => readFileSync(new URL(name, folder), "utf8"));
}

function bundledLine({ id, title, description }: Library): string {
  return `${id} (bundled, always available): ${title}. ${description}`;
}

function bundledNames(): string {
  return `Bundled: ${libraries.map(({ id }) => id).join(", ")}.`;
}

function resolvedText(name: string, asked: Asked<readonly FoundLibrary[]>): string | object {
  if (asked.kind === "found") {
    const lines = asked.value.map(({ id, title, description }) => `${id} (Context7): ${title}${description && `. ${description}`}`);
    return cut(lines.join("\n"), maxChars);
  }
  if (asked.kind === "nothing") return failure(`Context7 knows no library "${name}". ${bundledNames()}`);
  return failure(`${troubleOf(asked)} ${bundledNames()}`);
}

const truncationNote = "\n\n... The documentation continues. Narrow your query.";

function docsText(id: string, asked: Asked<string>): string | object {
  if (asked.kind === "nothing") return failure(`Context7 has no documentation of "${id}". Check the id with resolve_library_id.`);
  if (asked.kind !== "found") return failure(`${troubleOf(asked)} There is no documentation of "${id}" without it.`);
  return asked.value.length <= maxChars ? asked.value : cut(asked.value, maxChars - truncationNote.length) + truncationNote;
}

function troubleOf(asked: Exclude<Asked<unknown>, { kind: "found" | "nothing" }>): string {
  if (asked.kind === "unreachable") return "Context7 cannot be reached.";
  const when = asked.retryAfter === undefined ? "" : ` Try again after ${asked.retryAfter} seconds.`;
  return `Context7 answered with HTTP status ${asked.status}: ${asked.message}${when}`;
}

function failure(text: string): object {
  return { resultType: "failure", textResultForLlm: text, error: text };
}

import { addressFault, type FetchedPage, fetchPage, pageFaultText, type WebMachine } from "../operations/fetch-page.ts";
import { selectPassages } from "../operations/select-passages.ts";
import { failure, type WorkspaceTool } from "../workspace-tool.ts";

interface FetchArgs {
  readonly urls: readonly string[];
  readonly query?: string;
}

const maxUrls = 5;
const maxChars = 20_000;

const parameters = {
  type: "object",
  properties: {
    urls: {
      type: "array",
      items: { type: "string" },
      minItems: 1,
      maxItems: maxUrls,
      description: `The http or https addresses of the pages, at most ${maxUrls}.`,
    },
    query: { type: "string", description: "What to look for in the pages, in a few words." },
  },
  required: ["urls"],
} as const;

export function createFetchTool(machine: WebMachine): WorkspaceTool<FetchArgs> {
  return {
    name: "fetch_web_page",
    description: `Fetches web pages and returns their content as Markdown; for long pages, the parts relevant to the query.
Redirects to another host are reported, not followed.`,
    parameters,
    annotations: { readOnlyHint: true, openWorldHint: true },
    overridesBuiltInTool: true,
    describe({ urls }) {
      const refusal = urls.map(addressFault).find((fault) => fault !== undefined);
      if (refusal !== undefined) return { refusal };
      const [url] = urls;
      const intention = urls.length === 1 ? "Fetch a web page" : `Fetch ${urls.length} web pages`;
      return { request: { kind: "url", intention, url, ...(urls.length > 1 && { possibleUrls: urls.map((each) => ({ url: each })) }) } };
    },
    async run({ urls, query = "" }, { context, roots }) {
      const { signal } = context.invocation;
      const room = Math.floor(maxChars / urls.length);
      const pages = await Promise.all(
        urls.map(async (url) => ({
          url,
          page: addressFault(url) === undefined ? await fetchPage(url, { raw: false, signal, roots }, machine) : undefined,
        })),
      );
      const text = pages
        .map(({ url, page }) => `## ${url}\n${page === undefined ? addressFault(url) : contentOf(page, query, room)}`)
        .join("\n\n");
      return pages.some(({ page }) => page?.kind === "page") ? text : failure(text);
    },
  };
}

function contentOf(page: FetchedPage, query: string, room: number): string {
  if (page.kind !== "page") return `It could not be fetched: ${pageFaultText(page, "fetch_web_page")}`;
  const text = selectPassages(page.text, query, room);
  return page.isPart ? `${text}\n\n[The page is larger than the limit; only its beginning was read.]` : text;
}

import { addressFault, type FetchedPage, fetchPage, pageFaultText, shortened, type WebMachine } from "../operations/fetch-page.ts";
import { failure, type WorkspaceTool } from "../workspace-tool.ts";
import { cutFetchText, fetchEndText, fetchedText } from "./copilot-texts.ts";

interface WebFetchArgs {
  readonly url: string;
  readonly max_length?: number;
  readonly start_index?: number;
  readonly raw?: boolean;
}

const defaultLength = 5_000;
const maxLength = 20_000;

export function createWebFetchTool(machine: WebMachine): WorkspaceTool<WebFetchArgs> {
  return {
    name: "web_fetch",
    description: `Fetches a page over HTTP and returns its content as Markdown, one part at a time.
Redirects to another host are reported, not followed.`,
    parameters: {
      type: "object",
      properties: {
        url: { type: "string", description: "An http or https address." },
        max_length: {
          type: "integer",
          minimum: 1,
          maximum: maxLength,
          default: defaultLength,
          description: "Maximum number of characters to return.",
        },
        start_index: { type: "integer", minimum: 0, default: 0, description: "The offset to continue from: how many characters to skip." },
        raw: { type: "boolean", default: false, description: "Returns the HTML unchanged." },
      },
      required: ["url"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: true },
    describe({ url }) {
      const refusal = addressFault(url);
      return refusal === undefined ? { request: { kind: "url", intention: "Fetch a web page", url } } : { refusal };
    },
    async run(args, { context, roots }) {
      const { url, raw = false } = args;
      const refusal = addressFault(url);
      if (refusal !== undefined) return failure(refusal);
      const page = await fetchPage(url, { raw, signal: context.invocation.signal, roots }, machine);
      return page.kind === "page" ? part(page, args) : failure(`Fetching ${shortened(url)} failed: ${pageFaultText(page, "web_fetch")}`);
    },
  };
}

function part(
  { text, isPart }: Extract<FetchedPage, { kind: "page" }>,
  { url, start_index = 0, max_length = defaultLength }: WebFetchArgs,
): string {
  if (start_index >= text.length && start_index > 0) return fetchedText(url, fetchEndText);
  const end = start_index + max_length;
  const shown = text.slice(start_index, end);
  if (end < text.length) return fetchedText(url, shown + cutFetchText(end));
  return fetchedText(url, isPart ? `${shown}\n\n[The page is larger than the limit; only its beginning was read.]` : shown);
}

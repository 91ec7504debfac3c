import type { FetchedPage } from "./operations/fetch-page.ts";

/** Why an address cannot be fetched at all. */
export function addressFault(url: string): string | undefined {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) return `${shortened(url)} is not an http or https address.`;
  return parsed.username === "" && parsed.password === ""
    ? undefined
    : "The address contains a user name or password, which cannot be sent.";
}

/** Why a page cannot be given. `tool`: what gets pages. */
export function pageFaultText(page: Exclude<FetchedPage, { kind: "page" }>, tool: string): string {
  if (page.kind === "redirect") return `it redirects to another host. Call ${tool} with ${shortened(page.url)} instead.`;
  if (page.kind === "status") return `the server answered with HTTP status ${page.status}.`;
  if (page.kind === "binary") return `it is not text${page.contentType === "" ? "" : ` but ${page.contentType.slice(0, 100)}`}.`;
  return page.message;
}

export function shortened(url: string): string {
  return url.length > 500 ? `${url.slice(0, 500)}…` : url;
}

export type HtmlToken =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind: "tag";
      /** In small letters. */
      readonly name: string;
      readonly isEnd: boolean;
      /** `<br/>` */
      readonly isClosed: boolean;
      readonly href: string | undefined;
    };

/** Their content is no markup: it goes on to their end tag. */
const rawTags: ReadonlySet<string> = new Set(["script", "style", "textarea", "title", "xmp", "noembed"]);

/** Takes a page apart, in one pass over it. It never fails: what is no tag is text. */
export function* readHtml(html: string): Iterable<HtmlToken> {
  // Looked for once and in small letters, so that a page of open tags is not searched to its end for each.
  const lower = html.toLowerCase();
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    if (open === -1) break;
    if (open > at) yield { kind: "text", text: html.slice(at, open) };
    if (html.startsWith("<!--", open)) {
      const end = html.indexOf("-->", open + 4);
      at = end === -1 ? html.length : end + 3;
      continue;
    }
    const { end, token } = readTag(html, lower, open);
    at = end;
    if (token !== undefined) yield token;
    if (token?.kind !== "tag" || token.isEnd || !rawTags.has(token.name)) continue;
    const close = lower.indexOf(`</${token.name}`, at);
    const stop = close === -1 ? html.length : close;
    if (stop > at) yield { kind: "text", text: html.slice(at, stop) };
    at = stop;
  }
  if (at < html.length) yield { kind: "text", text: html.slice(at) };
}

const maxTagLength = 65_536;

/** What begins with this "<": a tag, a declaration, which is passed over, or only text. */
function readTag(html: string, lower: string, open: number): { end: number; token: HtmlToken | undefined } {
  const next = html[open + 1] ?? "";
  const isEnd = next === "/";
  const nameStart = open + (isEnd ? 2 : 1);
  const isName = /[a-zA-Z]/.test(html[nameStart] ?? "");
  if (!isName && next !== "!" && next !== "?") return { end: open + 1, token: { kind: "text", text: "<" } };
  const close = tagEnd(html, nameStart);
  // As a whole, so that no part of it is looked at again.
  if (close === undefined) {
    const end = Math.min(html.length, nameStart + maxTagLength);
    return { end, token: { kind: "text", text: html.slice(open, end) } };
  }
  if (!isName) return { end: close + 1, token: undefined };
  let nameEnd = nameStart;
  while (nameEnd < close && !/[\s/]/.test(html[nameEnd]!)) nameEnd++;
  const name = lower.slice(nameStart, nameEnd);
  const isClosed = html[close - 1] === "/";
  const href = name === "a" && !isEnd ? hrefIn(html.slice(nameEnd, close)) : undefined;
  return { end: close + 1, token: { kind: "tag", name, isEnd, isClosed, href } };
}

/** Where a tag ends: at the first ">" outside of quotes. */
function tagEnd(html: string, from: number): number | undefined {
  const limit = Math.min(html.length, from + maxTagLength);
  let quote = "";
  for (let at = from; at < limit; at++) {
    const char = html[at]!;
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === ">") return at;
    else if ((char === '"' || char === "'") && html[at - 1] === "=") quote = char;
  }
  return undefined;
}

function hrefIn(attributes: string): string | undefined {
  const [, double, single, bare] = /(?:^|\s)href=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i.exec(attributes) ?? [];
  return double ?? single ?? bare;
}

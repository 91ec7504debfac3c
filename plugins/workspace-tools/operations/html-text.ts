import { decodeEntities } from "./html-entities.ts";
import { type HtmlToken, readHtml } from "./html-tokens.ts";

/**
 * What a page says, as text with a little Markdown: headings, lists, links, code. Made in one pass over the page, which
 * may be anything. Addresses of links are completed by the page's own.
 */
export function htmlToText(html: string, baseUrl: string): string {
  const writer = new TextWriter(baseUrl);
  for (const token of readHtml(html)) writer.take(token);
  return writer.text();
}

const blocks: ReadonlySet<string> = new Set(
  "address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form header hr html main nav ol p section summary table tbody tfoot thead tr ul".split(
    " ",
  ),
);
/** What is between their tags is not for readers. */
const silent: ReadonlySet<string> = new Set("head script style noscript template svg iframe object select button canvas".split(" "));

const maxOpenLinks = 16;

class TextWriter {
  readonly #baseUrl: string;
  #parts: string[] = [];
  #silentTag: string | undefined;
  #silentDepth = 0;
  #preDepth = 0;
  #isAtLineStart = true;
  #links: string[] = [];
  #title = "";
  #isInTitle = false;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  take(token: HtmlToken): void {
    if (token.kind === "text") this.#takeText(token.text);
    else if (!this.#skips(token)) this.#takeTag(token);
  }

  text(): string {
    const body = this.#parts
      .join("")
      .replace(/[ \t]+\n/g, "\n")
      .replace(/\n{3,}/g, "\n\n")
      .trim();
    const title = this.#title.replace(/\s+/g, " ").trim();
    return title === "" || body.startsWith(`# ${title}`) ? body : `# ${title}\n\n${body}`.trim();
  }

  /** Within what is not for readers only its own end counts; a title in it is kept all the same. */
  #skips({ name, isEnd }: TagToken): boolean {
    if (name === "title" && (this.#silentTag === "head" || this.#silentTag === undefined)) {
      this.#isInTitle = !isEnd && this.#title === "";
      return true;
    }
    if (this.#silentTag === undefined) return false;
    // A page may leave the end of its head out.
    if (this.#silentTag === "head" && name === "body" && !isEnd) {
      this.#silentTag = undefined;
      return false;
    }
    if (name === this.#silentTag) this.#silentDepth += isEnd ? -1 : 1;
    if (this.#silentDepth <= 0) this.#silentTag = undefined;
    return true;
  }

  #takeTag(tag: TagToken): void {
    const { name, isEnd } = tag;
    if (silent.has(name)) {
      if (isEnd || tag.isClosed) return;
      this.#silentTag = name;
      this.#silentDepth = 1;
    } else if (/^h[1-6]$/.test(name)) {
      this.#breakLine(2);
      if (!isEnd) this.#put(`${"#".repeat(Number(name[1]))} `);
    } else if (name === "li") {
      this.#breakLine(1);
      if (!isEnd) this.#put("- ");
    } else if (name === "pre") this.#takePre(isEnd);
    else if (name === "a") this.#takeLink(tag);
    else if (name === "br") this.#put("\n");
    else if (name === "td" || name === "th") this.#put(isEnd ? " | " : "");
    else if (name === "code" && this.#preDepth === 0) this.#put("`");
    else if (name === "hr") this.#put("\n\n---\n\n");
    else if (blocks.has(name)) this.#breakLine(name === "p" || name === "div" || name === "section" || name === "article" ? 2 : 1);
  }

  #takePre(isEnd: boolean): void {
    if (isEnd && this.#preDepth === 0) return;
    this.#preDepth += isEnd ? -1 : 1;
    this.#put(isEnd ? "\n```\n\n" : "\n\n```\n");
  }

  #takeLink({ isEnd, href }: TagToken): void {
    if (!isEnd) {
      const address = href === undefined ? "" : this.#complete(decodeEntities(href));
      if (this.#links.length >= maxOpenLinks) return;
      this.#links.push(address);
      if (address !== "") this.#put("[");
      return;
    }
    const address = this.#links.pop();
    if (address !== undefined && address !== "") this.#put(`](${address})`);
  }

  #complete(href: string): string {
    if (href.startsWith("#") || !URL.canParse(href, this.#baseUrl)) return "";
    const url = new URL(href, this.#baseUrl);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : "";
  }

  #takeText(raw: string): void {
    if (this.#isInTitle) this.#title += decodeEntities(raw).slice(0, 500);
    if (this.#silentTag !== undefined || this.#isInTitle) return;
    const text = decodeEntities(raw);
    if (this.#preDepth > 0) this.#put(text);
    else {
      const joined = text.replace(/\s+/g, " ");
      this.#put(this.#isAtLineStart ? joined.trimStart() : joined);
    }
  }

  #breakLine(count: 1 | 2): void {
    if (this.#preDepth === 0) this.#put("\n".repeat(count));
  }

  #put(text: string): void {
    if (text === "") return;
    this.#parts.push(text);
    this.#isAtLineStart = text.endsWith("\n");
  }
}

type TagToken = Extract<HtmlToken, { kind: "tag" }>;

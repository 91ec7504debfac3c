import { Tokenizer, type TokenizerCallbacks } from "htmlparser2";

/**
 * Converts a page to text with some Markdown: headings, lists, links, code. Takes one pass over any input. Links are
 * resolved against the page's address.
 */
export function htmlToText(html: string, baseUrl: string): string {
  const writer = new TextWriter(baseUrl);
  // Tokens only: building the tree of a hostile, deeply nested page would take too long.
  const tokenizer = new Tokenizer({ decodeEntities: true }, callbacksOf(html, writer));
  tokenizer.write(html);
  tokenizer.end();
  return writer.text();
}

interface Tag {
  /** In lower case. */
  readonly name: string;
  readonly isEnd: boolean;
  /** `<br/>` */
  readonly isClosed: boolean;
  readonly href: string | undefined;
}

/** Assembles tags from tokens: a tag arrives in pieces. */
function callbacksOf(html: string, writer: TextWriter): TokenizerCallbacks {
  let [name, attribute, value] = ["", "", ""];
  let href: string | undefined;
  const finishTag = (isClosed: boolean): void => {
    writer.takeTag({ name, isEnd: false, isClosed, href });
    href = undefined;
  };
  return {
    ontext: (start, end) => writer.takeText(html.slice(start, end)),
    ontextentity: (code) => writer.takeText(String.fromCodePoint(code)),
    onopentagname(start, end) {
      name = html.slice(start, Math.min(end, start + maxName)).toLowerCase();
    },
    onattribname(start, end) {
      attribute = name === "a" && end - start === 4 ? html.slice(start, end).toLowerCase() : "";
      value = "";
    },
    onattribdata(start, end) {
      if (attribute === "href" && value.length < maxAddress) value += html.slice(start, end);
    },
    onattribentity(code) {
      if (attribute === "href" && value.length < maxAddress) value += String.fromCodePoint(code);
    },
    onattribend() {
      if (attribute === "href") href ??= value;
    },
    onopentagend: () => finishTag(false),
    onselfclosingtag: () => finishTag(true),
    onclosetag: (start, end) =>
      writer.takeTag({
        name: html.slice(start, Math.min(end, start + maxName)).toLowerCase(),
        isEnd: true,
        isClosed: false,
        href: undefined,
      }),
    oncdata() {},
    oncomment() {},
    ondeclaration() {},
    onprocessinginstruction() {},
    onend() {},
  };
}

const maxName = 32;
const maxAddress = 10_000;

const blocks: ReadonlySet<string> = new Set(
  "address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form header hr html main nav ol p section summary table tbody tfoot thead tr ul".split(
    " ",
  ),
);
/** The content of these elements is not text for readers. */
const silent: ReadonlySet<string> = new Set("head script style noscript template svg iframe object select button canvas".split(" "));

const maxOpenLinks = 16;
const maxTitle = 500;

class TextWriter {
  readonly #baseUrl: string;
  #parts: string[] = [];
  #silentTag: string | undefined;
  #silentDepth = 0;
  #preDepth = 0;
  #isAtLineStart = true;
  #isAfterBlank = false;
  #links: string[] = [];
  #title = "";
  #isInTitle = false;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  takeTag(tag: Tag): void {
    if (!this.#skips(tag)) this.#putTag(tag);
  }

  text(): string {
    const lines = this.#parts.join("").split("\n").map(withoutBlanks).join("\n");
    const body = lines.replace(/\n{3,}/g, "\n\n").trim();
    const title = this.#title.replace(/\s+/g, " ").trim();
    return title === "" || body.startsWith(`# ${title}`) ? body : `# ${title}\n\n${body}`.trim();
  }

  /** In a silent element only its end tag matters, except for the title. */
  #skips({ name, isEnd }: Tag): boolean {
    if (name === "title" && (this.#silentTag === "head" || this.#silentTag === undefined)) {
      this.#isInTitle = !isEnd && this.#title === "";
      return true;
    }
    if (this.#silentTag === undefined) return false;
    // A page may omit the end tag of its head.
    if (this.#silentTag === "head" && name === "body" && !isEnd) {
      this.#silentTag = undefined;
      return false;
    }
    if (name === this.#silentTag) this.#silentDepth += isEnd ? -1 : 1;
    if (this.#silentDepth <= 0) this.#silentTag = undefined;
    return true;
  }

  #putTag(tag: Tag): void {
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

  #takeLink({ isEnd, href }: Tag): void {
    if (!isEnd) {
      const address = href === undefined ? "" : this.#complete(href);
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

  takeText(text: string): void {
    if (this.#isInTitle && this.#title.length < maxTitle) this.#title += text.slice(0, maxTitle);
    if (this.#silentTag !== undefined || this.#isInTitle) return;
    // A soft hyphen only marks where a word may be broken.
    const shown = text.replaceAll("\u00ad", "");
    if (this.#preDepth > 0) this.#put(shown.replaceAll("\u00a0", " "));
    else {
      const joined = shown.replace(/\s+/g, " ");
      // Spaces on both sides of a reference (&amp;) or a tag collapse into one.
      this.#put(this.#isAtLineStart || this.#isAfterBlank ? joined.trimStart() : joined);
    }
  }

  #breakLine(count: 1 | 2): void {
    if (this.#preDepth === 0) this.#put("\n".repeat(count));
  }

  #put(text: string): void {
    if (text === "") return;
    this.#parts.push(text);
    this.#isAtLineStart = text.endsWith("\n");
    this.#isAfterBlank = text.endsWith(" ");
  }
}

/** A line without trailing white space. A regular expression would take quadratic time. */
function withoutBlanks(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === " " || line[end - 1] === "\t")) end--;
  return line.slice(0, end);
}

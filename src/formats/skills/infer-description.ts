/**
 * A description for a document that has none: its first paragraph as it stands, in one line, else its first heading.
 * Empty when there is neither.
 */
export function inferDescription(body: string): string {
  let heading = "";
  for (const block of blocks(body)) {
    const headingText = /^#{1,6}[ \t]+([^\n]+)/.exec(block)?.[1];
    if (heading === "" && headingText !== undefined) heading = headingText.trim();
    if (isProse(block)) return block.replaceAll("\n", " ");
  }
  return heading;
}

// Blocks are what blank lines separate. Fences are not followed: text inside one that has blank lines still describes the skill
// better than its title does.
function* blocks(body: string): Generator<string> {
  let start = 0;
  for (let at = 0; at < body.length; ) {
    const end = body.indexOf("\n", at);
    const next = end === -1 ? body.length : end + 1;
    if (body.slice(at, next).trim() === "") {
      yield* block(body, start, at);
      start = next;
    }
    at = next;
  }
  yield* block(body, start, body.length);
}

function* block(body: string, start: number, end: number): Generator<string> {
  const text = body.slice(start, end).trim();
  if (text !== "") yield text;
}

// Headings, HTML and comments, fences, tables, images and badges, thematic breaks, setext headings.
function isProse(block: string): boolean {
  return !/^(?:#|<|```|~~~|\||!\[|\[!\[|([-*_])[ \t]*(?:\1[ \t]*){2,}(?:\n|$)|[^\n]+\n(?:=+|-+)[ \t]*(?:\n|$))/.test(block);
}

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

function isProse(block: string): boolean {
  if (/^(?:#|<|```|~~~|\||!\[|\[!\[)/.test(block)) return false;
  const firstEnd = block.indexOf("\n");
  if (firstEnd === -1) return !isThematicBreak(block);
  const secondEnd = block.indexOf("\n", firstEnd + 1);
  const second = block.slice(firstEnd + 1, secondEnd === -1 ? undefined : secondEnd);
  return !isThematicBreak(block.slice(0, firstEnd)) && !isSetextUnderline(second);
}

// Character by character: a regular expression with a repeated group remembers each repetition, and a line can have millions.
function isThematicBreak(line: string): boolean {
  const mark = line[0]!;
  if (!"-*_".includes(mark)) return false;
  let marks = 0;
  for (const char of line) {
    if (char === mark) marks++;
    else if (char !== " " && char !== "\t") return false;
  }
  return marks >= 3;
}

function isSetextUnderline(line: string): boolean {
  return /^(?:=+|-+)[ \t]*$/.test(line);
}

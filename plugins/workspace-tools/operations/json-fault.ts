/** Where the first thing stands that keeps a text from being JSON; its end when nothing does, or something is missing there. */
export function jsonFaultAt(text: string): number {
  const open: ("{" | "[")[] = [];
  let [at, next]: [number, Expected] = [0, "value"];
  for (;;) {
    at = matchAt(/[ \t\r\n]*/y, text, at)!;
    const char = text[at];
    if (char === undefined) return at;
    const isEnd = char === (open.at(-1) === "{" ? "}" : "]") && open.length > 0;
    if (isEnd && (next === "comma" || next === "first key" || next === "first value")) {
      open.pop();
      at++;
      next = open.length === 0 ? "end" : "comma";
    } else if (next === "comma" && char === ",") {
      at++;
      next = open.at(-1) === "{" ? "key" : "value";
    } else if (next === "colon" && char === ":") {
      at++;
      next = "value";
    } else if (next === "key" || next === "first key") {
      const end = char === '"' ? endOfString(text, at) : at;
      if (text[end - 1] !== '"' || end === at) return end;
      [at, next] = [end, "colon"];
    } else if (next !== "value" && next !== "first value") return at;
    else if (char === "{" || char === "[") {
      open.push(char);
      at++;
      next = char === "{" ? "first key" : "first value";
    } else {
      const end = char === '"' ? endOfString(text, at) : matchAt(plain, text, at);
      if (end === undefined || (char === '"' && text[end - 1] !== '"')) return end ?? at;
      [at, next] = [end, open.length === 0 ? "end" : "comma"];
    }
  }
}

type Expected = "value" | "first value" | "key" | "first key" | "colon" | "comma" | "end";

const plain = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

function matchAt(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

/** Behind its closing quote; or where what does not belong into a string is, or the text ends. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return at + 1;
    if (text.charCodeAt(at) < 0x20) return at;
    if (text[at] === "\\") {
      if (matchAt(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y, text, at) === undefined) return at;
      at += text[at + 1] === "u" ? 5 : 1;
    }
  }
  return text.length;
}

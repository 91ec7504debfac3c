import { url as inspectorUrl } from "node:inspector";
import { pathToFileURL } from "node:url";
import { type Translate, translatorOf } from "./error-position.ts";
import type { ModuleScript } from "./module-scripts.ts";

/**
 * The comment that leads a debugger from compiled code to its source. Empty unless a debugger can be attached: only then is
 * the map worth its price. `head`: the lines that precede the code in what is compiled.
 */
export function debugComment(code: string, head: number, script: ModuleScript): string {
  if (inspectorUrl() === undefined) return "";
  const translate = translatorOf(script);
  if (translate === undefined) return "";
  const map = {
    version: 3,
    sources: [pathToFileURL(script.file).href],
    sourcesContent: [script.text],
    names: [],
    mappings: ";".repeat(head) + mappingsOf(code, head, translate),
  };
  const encoded = Buffer.from(JSON.stringify(map)).toString("base64");
  return `\n//# sourceMappingURL=data:application/json;charset=utf-8;base64,${encoded}`;
}

/** One segment for each word and sign whose source is not simply the next column. */
function mappingsOf(code: string, head: number, translate: Translate): string {
  let before = { line: 1, column: 1 };
  return code
    .split("\n")
    .map((text, index) => {
      let generated = 0;
      const segments: string[] = [];
      for (const { index: column } of text.matchAll(TOKEN)) {
        const at = translate({ line: index + 1 + head, column: column + 1 });
        if (at === undefined) continue;
        segments.push([column - generated, 0, at.line - before.line, at.column - before.column].map(toVlq).join(""));
        generated = column;
        before = at;
      }
      return segments.join(",");
    })
    .join(";");
}

const TOKEN = /[\w$]+|[^\s\w$]/g;
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A number as source maps write it: base 64, the sign in the lowest bit, five bits a digit. */
function toVlq(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1;
  let digits = "";
  do {
    const digit = rest & 31;
    rest >>>= 5;
    digits += DIGITS[rest > 0 ? digit | 32 : digit];
  } while (rest > 0);
  return digits;
}

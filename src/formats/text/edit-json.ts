import { applyEdits, type Edit, findNodeAtLocation, modify, parseTree } from "jsonc-parser";
import type { Json } from "../../base/json.ts";
import type { JsonPath } from "./json-document.ts";

/**
 * Sets or, for undefined, removes one value of a JSON text, which may have comments and trailing commas. All other characters stay: order,
 * comments, indentation, line ends. Missing objects on the way are created. An index past the end of an array appends to it.
 * `text` must parse; an empty one becomes an object.
 */
export function editJson(text: string, path: JsonPath, value: unknown): string {
  const mark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const given = text.slice(mark.length);
  const body = given.trim() === "" ? "{\n}\n" : given;
  if (value === undefined && typeof path.at(-1) === "number") return mark + removeElement(body, path);
  // Without options for formatting, which would change the lines around, too.
  const isArrayInsertion = typeof path.at(-1) === "number" && value !== undefined;
  const edits = modify(body, [...path], value, { isArrayInsertion });
  const [edit] = edits;
  if (edit === undefined) return text;
  return mark + (value === undefined ? remove(body, edit) : applyEdits(body, [laidOut(body, edit)]));
}

// modify() of jsonc-parser 3.3 removes one character too few of the last element.
function removeElement(text: string, path: JsonPath): string {
  const list = findNodeAtLocation(parseTree(text)!, path.slice(0, -1))?.children ?? [];
  const index = path.at(-1) as number;
  const [before, element, after] = [list[index - 1], list[index], list[index + 1]];
  if (element === undefined) return text;
  const from = after === undefined && before !== undefined ? before.offset + before.length : element.offset;
  return text.slice(0, from) + text.slice(after?.offset ?? element.offset + element.length);
}

function remove(text: string, edit: Edit): string {
  const after = applyEdits(text, [edit]);
  const before = /\{\s*$/.exec(after.slice(0, edit.offset));
  const rest = /^\s*\}/.exec(after.slice(edit.offset));
  // The last member has left its lines behind.
  if (before === null || rest === null) return after;
  return `${after.slice(0, before.index)}{}${after.slice(edit.offset + rest[0].length)}`;
}

/** The edit with the new member on lines of its own, as the text around it is written. */
function laidOut(text: string, edit: Edit): Edit {
  const [, first = "", member, last = ""] = /^(,?)("[\s\S]*?)(,?)$/.exec(edit.content) ?? [];
  const isMember = member !== undefined && /^"(?:[^"\\]|\\.)*":/.test(member);
  if (!isMember || edit.length > 0 || !text.trimEnd().includes("\n")) return edit;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const [, indent = "  "] = /^([\t ]+)\S/m.exec(text) ?? [];
  const depth = depthAt(text.slice(0, edit.offset));
  const lines = JSON.stringify(JSON.parse(`{${member}}`) as Json, null, indent)
    .split("\n")
    .slice(1, -1)
    .map((line) => indent.repeat(depth - 1) + line);
  const isAlone = first === "" && /^\s*\}/.test(text.slice(edit.offset));
  const closing = isAlone && !/^\s*\n/.test(text.slice(edit.offset)) ? eol + indent.repeat(depth - 1) : "";
  return { ...edit, content: `${first}${eol}${lines.join(eol)}${last}${closing}` };
}

/** How many objects and arrays are open at the end of a text. */
function depthAt(text: string): number {
  const tokens = text.matchAll(/"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|[{}[\]]/g);
  let depth = 0;
  for (const [token] of tokens) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
  }
  return depth;
}

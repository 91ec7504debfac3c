import { createRequire } from "node:module";
import type * as Formats from "ajv-formats/dist/formats.js";

/** What texts (or numbers) of a format look like, such as dates. */
export interface StringFormat {
  readonly type: "string" | "number";
  test(value: never): boolean;
}

// Of the formats that can be matched in linear time only; the others are never as long as this.
const longest = 8_192;
const ofAnyLength: ReadonlySet<string> = new Set(["uri", "uri-reference", "byte", "binary", "password"]);

const load: NodeJS.Require = createRequire(import.meta.url);
let formats: ReadonlyMap<string, StringFormat> | undefined;

/** Loaded when the first schema is looked at: many sessions check none. */
export function allFormats(): ReadonlyMap<string, StringFormat> {
  formats ??= readFormats((load("ajv-formats/dist/formats.js") as typeof Formats).fullFormats);
  return formats;
}

type Definition = (typeof Formats.fullFormats)[keyof typeof Formats.fullFormats];

function readFormats(all: Readonly<Record<string, Definition>>): ReadonlyMap<string, StringFormat> {
  return new Map(Object.entries(all).map(([name, definition]) => [name, readFormat(name, definition)]));
}

function readFormat(name: string, definition: Definition): StringFormat {
  if (typeof definition === "object" && !(definition instanceof RegExp) && "type" in definition && definition.type === "number") {
    return { type: "number", test: definition.validate as (value: never) => boolean };
  }
  const test = textTest(definition);
  return { type: "string", test: (text: string) => (text.length <= longest || ofAnyLength.has(name)) && test(text) };
}

function textTest(definition: Definition): (text: string) => boolean {
  if (typeof definition === "boolean") return () => definition;
  if (definition instanceof RegExp) return (text) => definition.test(text);
  if (typeof definition === "function") return definition as (text: string) => boolean;
  const { validate } = definition as { readonly validate: RegExp | ((text: string) => boolean) };
  return validate instanceof RegExp ? (text) => validate.test(text) : validate;
}

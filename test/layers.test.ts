import { readdirSync, readFileSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));

/** The layers from bottom to top. Rooms on one line are siblings, which must not import each other. */
const layers: readonly (readonly string[])[] = [
  ["base"],
  ["io"],
  ["trust"],
  ["tools"],
  ["formats"],
  ["skills", "mcp", "models"],
  ["session"],
  ["plugin-host"],
  ["advice"],
  ["host"],
  ["servers", "packages", "adapters"],
  ["define.ts"],
  ["testing", "load-parts.ts"],
  ["index.ts", "testing.ts"],
  ["cli"],
];

interface Import {
  readonly from: string;
  readonly to: string;
}

const levelOf = (path: string): number => layers.findIndex((level) => level.includes(path.split("/")[0] as string));

function importsOf(file: string): Import[] {
  const text = readFileSync(resolve(source, file), "utf8");
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map((match) => match[1] as string);
  return specifiers.map((specifier) => ({
    from: file,
    to: relative(source, resolve(source, dirname(file), specifier))
      .split(sep)
      .join("/"),
  }));
}

/** Describes the violation of an import, if there is one. */
function fault({ from, to }: Import): string | undefined {
  const [own, theirs] = [levelOf(from), levelOf(to)];
  if (own === -1 || theirs === -1) return `${own === -1 ? from : to} stands in no layer`;
  if (theirs > own) return `${from} imports upward: ${to}`;
  if (theirs === own && from.split("/")[0] !== to.split("/")[0]) return `${from} imports its sibling ${to}`;
  return undefined;
}

test("no file imports a layer above it or a sibling", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const imports = files.map((file) => file.split(sep).join("/")).flatMap(importsOf);
  expect(imports.length).toBeGreaterThan(20);
  expect(imports.map(fault).filter((found) => found !== undefined)).toEqual([]);
});

test("the rule finds an upward import, a sibling import and an unknown folder", () => {
  expect([
    fault({ from: "tools/tool.ts", to: "session/session.ts" }),
    fault({ from: "mcp/source.ts", to: "skills/skill.ts" }),
    fault({ from: "misc/a.ts", to: "base/errors.ts" }),
    fault({ from: "session/session.ts", to: "tools/tool.ts" }),
  ]).toEqual([
    "tools/tool.ts imports upward: session/session.ts",
    "mcp/source.ts imports its sibling skills/skill.ts",
    "misc/a.ts stands in no layer",
    undefined,
  ]);
});

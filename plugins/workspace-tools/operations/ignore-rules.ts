import { matchesNames, parseName } from "./glob-pattern.ts";

/** One line of an ignore file. */
interface IgnoreRule {
  readonly pattern: ReturnType<typeof parsePattern>;
  readonly isNegated: boolean;
  readonly foldersOnly: boolean;
}

/** The rules of one ignore file, for the folder that it lies in. */
export type IgnoreRules = readonly IgnoreRule[];

const maxRules = 5_000;

/** Reads a file in the format of gitignore. A line that cannot be read ignores nothing. */
export function parseIgnoreFile(text: string): IgnoreRules {
  const rules: IgnoreRule[] = [];
  for (const raw of text.split("\n", maxRules)) {
    // Spaces at the end count only after a backslash.
    const line = raw.replace(/\r$/, "").replace(/(?<![\\ ]) +$/, "");
    if (line.trim() === "" || line.startsWith("#") || line.length > 1000) continue;
    const isNegated = line.startsWith("!");
    const body = isNegated ? line.slice(1) : line;
    const foldersOnly = body.endsWith("/");
    rules.push({ pattern: parsePattern(foldersOnly ? body.slice(0, -1) : body), isNegated, foldersOnly });
  }
  return rules;
}

/** What rules say of a path below their folder; the last that fits decides. Undefined: nothing. */
export function isIgnored(rules: IgnoreRules, path: readonly string[], isFolder: boolean): boolean | undefined {
  for (let at = rules.length - 1; at >= 0; at--) {
    const { pattern, isNegated, foldersOnly } = rules[at]!;
    if ((isFolder || !foldersOnly) && matchesNames(pattern, path)) return !isNegated;
  }
  return undefined;
}

/** A pattern with a slash other than at its end is about paths from here, one without about names anywhere below. */
function parsePattern(text: string): readonly ReturnType<typeof parseName>[] {
  const isAnchored = text.includes("/");
  const names = text.replace(/^\//, "").split("/").map(parseName);
  // `a/**` is about what is in the folder, and not about the folder.
  if (names.at(-1) === "**" && names.length > 1) names.push(parseName("*"));
  return isAnchored ? names : ["**", ...names];
}

import { matchesNames, parseName } from "./glob-pattern.ts";

/** One line of an ignore file. */
interface IgnoreRule {
  readonly pattern: ReturnType<typeof parsePattern>;
  readonly isNegated: boolean;
  readonly foldersOnly: boolean;
}

/** The rules of one ignore file, for its folder. */
export type IgnoreRules = readonly IgnoreRule[];

const maxRules = 5_000;

/** Parses a file in the gitignore format. An invalid line ignores nothing. */
export function parseIgnoreFile(text: string): IgnoreRules {
  const rules: IgnoreRule[] = [];
  for (const raw of text.split("\n", maxRules)) {
    // Trailing spaces count only after a backslash.
    const line = raw.replace(/\r$/, "").replace(/(?<![\\ ]) +$/, "");
    if (line.trim() === "" || line.startsWith("#") || line.length > 1000) continue;
    const isNegated = line.startsWith("!");
    const body = isNegated ? line.slice(1) : line;
    const foldersOnly = body.endsWith("/");
    rules.push({ pattern: parsePattern(foldersOnly ? body.slice(0, -1) : body), isNegated, foldersOnly });
  }
  return rules;
}

/** What rules say about a path below their folder; the last match decides. Undefined: no rule matches. */
export function isIgnored(rules: IgnoreRules, path: readonly string[], isFolder: boolean): boolean | undefined {
  for (let at = rules.length - 1; at >= 0; at--) {
    const { pattern, isNegated, foldersOnly } = rules[at]!;
    if ((isFolder || !foldersOnly) && matchesNames(pattern, path)) return !isNegated;
  }
  return undefined;
}

/** A pattern with a slash before its end matches paths from this folder; any other matches names at any depth. */
function parsePattern(text: string): readonly ReturnType<typeof parseName>[] {
  const isAnchored = text.includes("/");
  const names = text.replace(/^\//, "").split("/").map(parseName);
  // `a/**` matches what is in the folder, not the folder.
  if (names.at(-1) === "**" && names.length > 1) names.push(parseName("*"));
  return isAnchored ? names : ["**", ...names];
}

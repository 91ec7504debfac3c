import type { Tool } from "../tools/tool.ts";
import type { CatalogView } from "./catalog-view.ts";
import type { FilterPattern, FilterVerdict } from "./tool-filter.ts";

/** A name in a filter that does not do what its author may expect. */
export interface FilterNotice {
  /** Equal for one name in one list, so that it is said once. */
  readonly key: string;
  readonly filter: FilterPattern["filter"];
  readonly name: string;
  readonly problem: "unknown" | "disabled";
  readonly message: string;
}

type Hidden = ReadonlyMap<string, FilterVerdict & { readonly tool: Tool }>;

/** Checks the filters' names against what there is: callable tools, and those that a filter keeps out. */
export function noticesOf(view: CatalogView, executables: ReadonlyMap<string, Tool>, hidden: Hidden): readonly FilterNotice[] {
  const notices = new Map<string, FilterNotice>();
  for (const pattern of view.filter.patterns) {
    if (!pattern.namesSomething) continue;
    const notice = noticeOf(pattern, view, executables, hidden);
    if (notice !== undefined && !notices.has(notice.key)) notices.set(notice.key, notice);
  }
  return [...notices.values()];
}

function noticeOf(
  pattern: FilterPattern,
  view: CatalogView,
  executables: ReadonlyMap<string, Tool>,
  hidden: Hidden,
): FilterNotice | undefined {
  if (fits(pattern, executables, (tool) => tool)) return undefined;
  const isKnown = fits(pattern, hidden, ({ tool }) => tool);
  if (isKnown && pattern.filter === "excludedTools") return undefined;
  if (isKnown) return toNotice(pattern, "disabled", "it is also in excludedTools, which wins");
  const skill = view.disabledSkills.find((name) => pattern.text === `skill:${name}` || pattern.text.startsWith(`${name}/`));
  if (skill !== undefined) return toNotice(pattern, "disabled", `the skill "${skill}" is disabled`);
  return toNotice(pattern, "unknown", "no tool of this session fits it");
}

function toNotice({ filter, text }: FilterPattern, problem: FilterNotice["problem"], why: string): FilterNotice {
  const message = `${problem === "unknown" ? "Unknown" : "Disabled"} tool name in ${filter}: "${text}" (${why}).`;
  return { key: `${filter} ${problem} ${text}`, filter, name: text, problem, message };
}

/** Most patterns are plain names: those cost one look-up, the others a walk. */
function fits<T>(pattern: FilterPattern, map: ReadonlyMap<string, T>, toTool: (value: T) => Tool): boolean {
  const named = map.get(pattern.text);
  if (named !== undefined && pattern.matches(toTool(named))) return true;
  if (pattern.isPlainName) return false;
  for (const value of map.values()) if (pattern.matches(toTool(value))) return true;
  return false;
}

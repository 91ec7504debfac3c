import type { Tool } from "../../tools/tool.ts";
import type { CatalogView } from "./catalog-view.ts";
import { sessionToolNames } from "./session-tool.ts";
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
  for (const pattern of [...view.filter.patterns, ...view.agentFilter.patterns]) {
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
  if (pattern.isPlainName && sessionToolNames.has(pattern.text)) return undefined;
  if (fits(pattern, executables, (tool) => tool) !== undefined) return undefined;
  const known = fits(pattern, hidden, ({ tool }) => tool);
  if (known !== undefined) {
    const why = whyDisabled(pattern.filter, known.filter);
    return why === undefined ? undefined : toNotice(pattern, "disabled", why);
  }
  const skill = view.disabledSkills.find((name) => pattern.text === `skill:${name}` || pattern.text.startsWith(`${name}/`));
  if (skill !== undefined) return toNotice(pattern, "disabled", `the skill "${skill}" is disabled`);
  return toNotice(pattern, "unknown", "it matches no tool of this session");
}

/** Why a tool that a list allows is not there; undefined: that is what was wanted. */
function whyDisabled(list: FilterPattern["filter"], hiddenBy: FilterVerdict["filter"]): string | undefined {
  if (list === "availableTools" && hiddenBy === "excludedTools") return "it is also in excludedTools, which wins";
  const isSessions = hiddenBy === "availableTools" || hiddenBy === "excludedTools";
  return list === "agent.tools" && isSessions ? `the session's ${hiddenBy} hides it` : undefined;
}

function toNotice({ filter, text }: FilterPattern, problem: FilterNotice["problem"], why: string): FilterNotice {
  const message = `${problem === "unknown" ? "Unknown" : "Disabled"} tool name in ${filter}: "${text}" (${why}).`;
  return { key: `${filter} ${problem} ${text}`, filter, name: text, problem, message };
}

/** Most patterns are plain names: those cost one look-up, the others a walk. */
function fits<T>(pattern: FilterPattern, map: ReadonlyMap<string, T>, toTool: (value: T) => Tool): T | undefined {
  const named = map.get(pattern.text);
  if (named !== undefined && pattern.matches(toTool(named))) return named;
  if (pattern.isPlainName) return undefined;
  for (const value of map.values()) if (pattern.matches(toTool(value))) return value;
  return undefined;
}

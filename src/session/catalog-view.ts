import { canonicalJson } from "../base/canonical-json.ts";
import { parseToolFilter, type ToolFilter, type ToolFilterOptions } from "./tool-filter.ts";

export interface CatalogViewOptions extends ToolFilterOptions {
  readonly model?: string | undefined;
  /** Skill folders of this session, after the host's; absolute, in order of precedence. */
  readonly skillDirectories?: readonly string[] | undefined;
  readonly disabledSkills?: readonly string[] | undefined;
}

/** All of a session's options that its tools depend on. Sessions whose views have equal keys see the same catalog. */
export interface CatalogView {
  readonly key: string;
  readonly filter: ToolFilter;
  readonly availableTools: readonly string[] | undefined;
  readonly model: string | undefined;
  readonly skillDirectories: readonly string[];
  readonly disabledSkills: readonly string[];
}

/** @throws HostError `SESSION_OPTIONS` for what is not a tool pattern. */
export function createCatalogView(options: CatalogViewOptions): CatalogView {
  const { availableTools, excludedTools, toolFilterPrecedence = "excluded", model, skillDirectories = [], disabledSkills = [] } = options;
  return Object.freeze({
    key: canonicalJson({ availableTools, excludedTools, toolFilterPrecedence, model, skillDirectories, disabledSkills }),
    filter: parseToolFilter(options),
    availableTools,
    model,
    skillDirectories,
    disabledSkills,
  });
}

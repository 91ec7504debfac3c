import type { SkillScope } from "../trust/trust-policy.ts";

/** Whose a skill is, and whether somebody who is trusted signed it as it is. */
export interface SkillStanding {
  /** Undefined: it came with skillhost itself. */
  readonly scope: SkillScope | undefined;
  readonly isSigned: boolean;
}

/** What the tools of a skill may decide for themselves. */
export interface ToolRights {
  /**
   * Whether what a tool says of permission counts: `skipPermission`, a `permission()` that returns null, and the kind that
   * it gives its own calls, by which rules such as `read` allow them. If not, each call is asked for as that of an unknown tool.
   */
  readonly decidesPermission: boolean;
  /** Whether a tool that is written in JSON may read variables that the manifest does not declare, take its host from one, and have a model write scripts. */
  readonly isUnrestricted: boolean;
}

/**
 * The one place where this is decided, when a tool is published. People's own skills and those of skillhost may both. A skill
 * that somebody trusted signed decides about permission: he answers for it. In a project's folder only code does. Its code runs
 * with all rights of this process once the folder is trusted, so that asking about its calls protects nobody from it; but a
 * tool JSON runs nothing until it is called, and a question is then the first time that somebody sees what it does. What a
 * package brought was installed for one of its tools, and is not the word of whoever installed it.
 */
export function rightsOf({ scope, isSigned }: SkillStanding, form: "code" | "json"): ToolRights {
  const isOwn = scope === undefined || scope === "user";
  return { decidesPermission: isOwn || isSigned || (scope === "project" && form === "code"), isUnrestricted: isOwn };
}

import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Tool } from "../../tools/tool.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import { briefDiff, diffToApprove } from "../../trust/pins/definition-diff.ts";
import type { Pins, PinVerdict } from "../../trust/pins/pins.ts";
import { ownerId, type PinSubject } from "../../trust/pins/seen-pins.ts";
import type { Admission } from "../../trust/skill-trust.ts";
import type { SkillScope } from "../../trust/trust-policy.ts";

/** A tool of a skill that is not offered until somebody approves how it is defined. */
export interface HeldTool {
  readonly name: string;
  /** `changed`: it is not what was seen or approved before. `new`: nobody approved any version of it, and somebody must. */
  readonly reason: "changed" | "new";
  readonly digest: string;
  /** What changed, a line each; the whole definition where nothing is known to compare with. */
  readonly diff: readonly string[];
  /** Whether what it was before is known. */
  readonly hasBefore: boolean;
  readonly subject: PinSubject;
}

interface JudgedTools {
  readonly tools: readonly Tool[];
  /** The names of those that are left out, whatever for. */
  readonly leftOut: ReadonlySet<string>;
  readonly held: readonly HeldTool[];
  readonly diagnostics: readonly Diagnostic[];
}

interface DefinitionsPlace {
  readonly folder: string;
  readonly name: string;
  readonly admission: Admission | undefined;
  /** Tools that were just read from signed files: these cannot be defined otherwise than the files say. */
  readonly written: ReadonlySet<Tool>;
  /** What the tools that are written in JSON use of the machine. It is approved with their definitions. */
  readonly uses: ReadonlyMap<string, readonly string[]>;
  /** Undefined: definitions are believed as they come. */
  readonly pins: Pins | undefined;
}

/** Leaves out the tools whose definitions are not the signed ones, where they must be, or not the approved ones. */
export async function judgeTools(tools: readonly Tool[], place: DefinitionsPlace): Promise<JudgedTools> {
  const { admission, pins, name, written } = place;
  const faults = new Map<Tool, Diagnostic>();
  for (const tool of tools) {
    const fault = admission?.toolFault(tool.definition.name, written.has(tool) ? undefined : tool.signature);
    if (fault !== undefined) faults.set(tool, { source: name, ...fault });
  }
  const isLeftOut = (tool: Tool): boolean => faults.get(tool)?.severity === "error";
  const signed = tools.filter((tool) => !isLeftOut(tool));
  const { held, diagnostics } = pins === undefined ? nothingHeld : await hold(signed, place, pins);
  const leftOut = new Set([...tools.filter(isLeftOut).map(({ definition }) => definition.name), ...held.map((each) => each.name)]);
  return {
    tools: leftOut.size === 0 ? tools : tools.filter(({ definition }) => !leftOut.has(definition.name)),
    leftOut,
    held,
    diagnostics: [...faults.values(), ...diagnostics],
  };
}

const nothingHeld: Pick<JudgedTools, "held" | "diagnostics"> = { held: [], diagnostics: [] };

async function hold(tools: readonly Tool[], place: DefinitionsPlace, pins: Pins): Promise<typeof nothingHeld> {
  const { folder, name } = place;
  const subjects = tools.map((tool) => subjectOf(tool, place));
  const verdicts = await verdictsOn(subjects, name, folder, pins);
  const held = subjects.flatMap((subject, index): HeldTool[] => {
    const verdict = verdicts[index]!;
    if (verdict.kind === "accepted") return [];
    const before = verdict.kind === "changed" ? verdict.before : undefined;
    const diff = diffToApprove(before, subject.content);
    return [{ name: subject.name, reason: verdict.kind, digest: subject.digest, diff, hasBefore: before !== undefined, subject }];
  });
  return { held, diagnostics: held.map((each) => heldDiagnostic(each, name, folder)) };
}

/** What cannot be read approves nothing. */
async function verdictsOn(subjects: readonly PinSubject[], skill: string, folder: string, pins: Pins): Promise<readonly PinVerdict[]> {
  try {
    return await pins.judge(ownerOf(skill, folder), subjects);
  } catch (error) {
    throw new Error(`its approvals cannot be read (${errorMessage(error)})`, { cause: error });
  }
}

function subjectOf({ definition }: Tool, { name, folder, uses }: DefinitionsPlace): PinSubject {
  const used = uses.get(definition.name);
  const content = used === undefined ? definition : { ...definition, uses: used };
  return { kind: "skill-tool", owner: ownerOf(name, folder), name: definition.name, digest: digestOf(content), content };
}

/** Skills of one name in two places are two: what was approved of one says nothing of the other. */
function ownerOf(skill: string, folder: string): string {
  return ownerId(skill, [folder]);
}

function heldDiagnostic({ name, reason, diff, hasBefore }: HeldTool, skill: string, folder: string): Diagnostic {
  const how = `Review the change. If you accept it, approve it with "skillhost approve ${skill} ${name}" or host.approveSkill(${JSON.stringify(skill)}, ${JSON.stringify(name)}).`;
  const shared = { severity: "error", file: folder, source: skill } as const;
  if (reason === "new")
    return { ...shared, code: "SKILL_TOOL_UNAPPROVED", message: `Tool "${name}" is not available, because it is not approved. ${how}` };
  const changes = hasBefore ? briefDiff(diff) : ["(the previous definition is not known)"];
  const what = `The definition of tool "${name}" differs from what was first seen or approved, so it is not available. What changed:`;
  return { ...shared, code: "SKILL_TOOL_CHANGED", message: `${what}\n${changes.map((line) => `  ${line}`).join("\n")}\n${how}` };
}

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

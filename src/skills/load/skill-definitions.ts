import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Tool } from "../../tools/tool.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import { briefDiff, diffToApprove } from "../../trust/pins/definition-diff.ts";
import type { Pins, PinVerdict } from "../../trust/pins/pins.ts";
import { ownerId, type PinSubject } from "../../trust/pins/seen-pins.ts";
import type { Admission } from "../../trust/skill-trust.ts";
import type { SkillScope } from "../../trust/trust-policy.ts";

/** A tool of a skill that is not offered until its definition is approved. */
export interface HeldTool {
  readonly name: string;
  /** `changed`: it differs from the recorded or approved definition. `new`: no version of it is approved, and approval is required. */
  readonly reason: "changed" | "new";
  readonly digest: string;
  /** The changed lines; the whole definition if there is nothing to compare with. */
  readonly diff: readonly string[];
  /** Whether the previous definition is known. */
  readonly hasBefore: boolean;
  readonly subject: PinSubject;
}

interface JudgedTools {
  readonly tools: readonly Tool[];
  /** The names of all tools that are left out. */
  readonly leftOut: ReadonlySet<string>;
  readonly held: readonly HeldTool[];
  readonly diagnostics: readonly Diagnostic[];
}

interface DefinitionsPlace {
  readonly folder: string;
  readonly name: string;
  readonly admission: Admission | undefined;
  /** Tools just read from signed files, whose definitions the signature covers. */
  readonly written: ReadonlySet<Tool>;
  /** What the declarative tools use on the machine. It is approved with their definitions. */
  readonly uses: ReadonlyMap<string, readonly string[]>;
  /** Undefined: definitions are accepted without approval. */
  readonly pins: Pins | undefined;
}

/** Removes tools whose definitions differ from the signed ones, where a signature is required, or from the approved ones. */
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

/** Unreadable approvals approve nothing. */
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

/** Skills with the same name in two folders are different: an approval of one does not cover the other. */
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

/** The scope of a skill, and whether a trusted key signed its current state. */
export interface SkillStanding {
  /** Undefined: it is bundled with skillhost. */
  readonly scope: SkillScope | undefined;
  readonly isSigned: boolean;
}

/** What the tools of a skill may decide themselves. */
export interface ToolRights {
  /**
   * Whether the tool's own permission statements count: `skipPermission`, a `permission()` that returns null, and the kind of its calls,
   * by which rules such as `read` allow them. If not, each call needs the permission of an unknown tool.
   */
  readonly decidesPermission: boolean;
  /** Whether a declarative tool may read undeclared variables, take its host from one, and let a model write scripts. */
  readonly isUnrestricted: boolean;
}

/**
 * Decides the rights of tools, once, when they are published. The user's own skills and bundled ones have all rights. A skill signed by a
 * trusted key decides about permission: the signer answers for it. In a project's folder only code does: once the folder is trusted, its
 * code has all rights of this process, so asking about its calls would protect nothing. A tool JSON runs nothing until it is called, and
 * the question is the first time that the user sees what it does. A package was installed for one of its tools, so it does not speak for
 * the user.
 */
export function rightsOf({ scope, isSigned }: SkillStanding, form: "code" | "json"): ToolRights {
  const isOwn = scope === undefined || scope === "user";
  return { decidesPermission: isOwn || isSigned || (scope === "project" && form === "code"), isUnrestricted: isOwn };
}

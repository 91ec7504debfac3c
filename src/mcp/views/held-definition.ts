import type { Diagnostic } from "../../base/diagnostic.ts";
import { exactJson } from "../../base/hidden-characters.ts";
import { briefDiff, diffToApprove } from "../../trust/pins/definition-diff.ts";
import type { PinVerdict } from "../../trust/pins/pins.ts";
import type { PinSubject } from "../../trust/pins/seen-pins.ts";

/** Something of a server that is not offered until somebody approves it. */
export interface HeldDefinition {
  readonly kind: "tool" | "instructions" | "skill";
  /** What the configuration calls the server. */
  readonly server: string;
  /** The server's own name for the tool, the address of the skill; empty for instructions. */
  readonly name: string;
  /** `changed`: it is not what was seen or approved before. `new`: nobody approved any version of it, and somebody must. */
  readonly reason: "changed" | "new";
  /** Of what is held: the approval is for exactly this. */
  readonly digest: string;
  /** What changed, a line each; the whole definition where nothing is known to compare with. */
  readonly diff: readonly string[];
  readonly before?: unknown;
  readonly after: unknown;
}

export function heldDefinition(subject: PinSubject, verdict: Exclude<PinVerdict, { kind: "accepted" }>, server: string): HeldDefinition {
  const before = verdict.kind === "changed" ? verdict.before : undefined;
  return Object.freeze({
    kind: subject.kind.slice("mcp-".length) as HeldDefinition["kind"],
    server,
    name: subject.name,
    reason: verdict.kind,
    digest: subject.digest,
    diff: Object.freeze(diffToApprove(before, subject.content)),
    ...(before !== undefined && { before }),
    after: subject.content,
  });
}

// Each with its diff; who has changed more than that reads the names of the rest.
const maxDiffs = 20;
const maxNames = 20;

/** Says what is held back, why, and what to do about it. `howToApprove` ends each message. */
export function diagnoseHeld(held: readonly HeldDefinition[], howToApprove: (held: HeldDefinition) => string): readonly Diagnostic[] {
  const changed = held.filter(({ reason }) => reason === "changed");
  const told = changed.slice(0, maxDiffs).map((definition) => changedDiagnostic(definition, howToApprove));
  const rest = [...changed.slice(maxDiffs), ...held.filter(({ reason }) => reason === "new")];
  const kinds = new Set(rest.map(({ kind, reason }) => `${kind} ${reason}`));
  const grouped = [...kinds].map((kind) =>
    groupDiagnostic(
      rest.filter((definition) => `${definition.kind} ${definition.reason}` === kind),
      howToApprove,
    ),
  );
  return [...told, ...grouped];
}

function changedDiagnostic(held: HeldDefinition, howToApprove: (held: HeldDefinition) => string): Diagnostic {
  const changes = held.before === undefined ? ["(what it was before is not known)"] : briefDiff(held.diff);
  const what = `${subjectOf(held)} is not what was first seen or approved, so it is held back. What changed:`;
  const message = `${what}\n${changes.map((line) => `  ${line}`).join("\n")}\n${howToApprove(held)}`;
  return { severity: "error", code: codeOf(held), source: held.server, message };
}

function groupDiagnostic(group: readonly HeldDefinition[], howToApprove: (held: HeldDefinition) => string): Diagnostic {
  const [first] = group as readonly [HeldDefinition, ...HeldDefinition[]];
  const names = group.slice(0, maxNames).map(({ name }) => exactJson(name.slice(0, 80)));
  const more = group.length > maxNames ? ` and ${group.length - maxNames} more` : "";
  const isOne = group.length === 1;
  const subject = isOne ? subjectOf(first) : `MCP server "${first.server}", ${group.length} ${first.kind}s (${names.join(", ")}${more})`;
  const verb = isOne ? "it is" : "they are";
  const why = first.reason === "new" ? `${verb} not approved yet` : `${isOne ? "it has" : "they have"} changed since the approval`;
  const message = `${subject}: ${verb} held back, because ${why}. ${howToApprove(first)}`;
  return { severity: first.reason === "new" ? "warning" : "error", code: codeOf(first), source: first.server, message };
}

function subjectOf({ kind, server, name }: HeldDefinition): string {
  return `MCP server "${server}", ${kind === "instructions" ? "its instructions" : `${kind} ${exactJson(name.slice(0, 200))}`}`;
}

function codeOf({ kind, reason }: HeldDefinition): string {
  return `MCP_${kind.toUpperCase()}_${reason === "changed" ? "CHANGED" : "UNAPPROVED"}`;
}

import type { Asks, JsonSchema, PermissionAsk, PermissionDecision } from "../../tools/tool.ts";

/** The question whether a call may run, as a form that a client shows. */
export interface PermissionForm {
  readonly message: string;
  readonly schema: JsonSchema;
}

const once = "allow once";
const session = "allow for this session";
const deny = "deny";

/** `isShared`: several clients share the session, so none of them may allow anything for all of it. */
export function permissionForm(data: PermissionAsk, isShared: boolean): PermissionForm {
  const decision = { type: "string", title: "Decision", enum: isShared ? [once, deny] : [once, session, deny] };
  return { message: describe(data), schema: { type: "object", properties: { decision }, required: ["decision"] } };
}

export function permissionAnswer({ action, content }: Asks["elicitation"]["answer"]): PermissionDecision {
  const decision = action === "accept" ? content?.["decision"] : deny;
  if (decision === once) return { kind: "approve-once" };
  return decision === session ? { kind: "approve-for-session" } : { kind: "reject" };
}

/** Added to what a model reads when a call was denied because nobody could be asked. */
export const howToAllow =
  'Nobody could be asked for permission: this client does not support elicitation. Whoever runs the server can allow calls: "skillhost mcp --allow <rule>", or --yes for all.';

const shownFields = ["fullCommandText", "path", "fileName", "url", "diff", "hookMessage"];
const longest = 4_000;

function describe(data: PermissionAsk): string {
  const lines = [`May the tool "${data.toolName}" be called?`, `Arguments: ${shortened(jsonOf(data.toolArgs))}`];
  for (const field of shownFields) {
    const value = data[field];
    if (typeof value === "string" && value !== "") lines.push(`${field}: ${shortened(value)}`);
  }
  return lines.join("\n");
}

function shortened(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text;
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "none";
  } catch {
    // A hook gave arguments that JSON cannot hold; the person at least sees that.
    return "(cannot be shown)";
  }
}

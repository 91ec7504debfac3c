import { permissionText } from "../../session/permissions/permission-text.ts";
import type { Asks, JsonSchema, PermissionAsk, PermissionDecision } from "../../tools/tool.ts";

/** The question whether a call may run, as a form that a client shows. */
export interface PermissionForm {
  readonly message: string;
  readonly schema: JsonSchema;
}

const once = "allow once";
const unseen = "allow once, with the parts that are not shown";
const session = "allow for this session";
const deny = "deny";

/**
 * `isShared`: several clients share the session, so none of them may allow anything for all of it. Nor may anybody allow
 * for longer what is too long to be shown.
 */
export function permissionForm(data: PermissionAsk, isShared: boolean): PermissionForm {
  const { text: message, isWhole } = permissionText(data);
  const allowed = isWhole ? (isShared ? [once] : [once, session]) : [unseen];
  const decision = { type: "string", title: "Decision", enum: [...allowed, deny] };
  return { message, schema: { type: "object", properties: { decision }, required: ["decision"] } };
}

export function permissionAnswer({ action, content }: Asks["elicitation"]["answer"]): PermissionDecision {
  const decision = action === "accept" ? content?.["decision"] : deny;
  if (decision === once || decision === unseen) return { kind: "approve-once" };
  return decision === session ? { kind: "approve-for-session" } : { kind: "reject" };
}

/** Added to what a model reads when a call was denied because nobody could be asked. */
export const howToAllow =
  'Permission could not be requested: this client does not support elicitation. The operator of the server can allow calls: "skillhost mcp --allow <rule>", or --yes for all.';

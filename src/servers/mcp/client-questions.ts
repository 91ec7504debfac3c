import { randomUUID } from "node:crypto";
import { isRecord } from "../../base/json.ts";
import { escapeHidden } from "../../base/untrusted-text.ts";
import type { AskKind } from "../../session/clients/request-kinds.ts";
import { permissionText } from "../../session/permissions/permission-reach.ts";
import { compileSchema } from "../../tools/schema/json-schema-validator.ts";
import type { Asks, JsonSchema, PermissionAsk, PermissionDecision } from "../../tools/tool.ts";

/** The capabilities that a client has declared, unchecked. */
export type DeclaredCapabilities = Readonly<Record<string, unknown>>;

/** A request of MCP to a client: `elicitation/create`, `sampling/createMessage` or `roots/list`. */
interface ClientRequest {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Readonly<Record<string, unknown>>;
}

/** A question of the session in the form of the protocol. */
export interface ClientQuestion {
  readonly request: ClientRequest;
  /** The required capabilities of the client. */
  readonly requires: DeclaredCapabilities;
  /** Converts the client's response. Undefined: it is not a valid answer, so the question may be repeated. */
  read(response: unknown): unknown;
}

/** Converts a request of the session. Undefined: MCP clients cannot be asked this. */
export function toClientQuestion<K extends AskKind>(kind: K, data: Asks[K]["data"], isShared: boolean): ClientQuestion | undefined {
  switch (kind) {
    case "elicitation":
      return elicitation(data as Asks["elicitation"]["data"]);
    case "userInput":
      return userInput(data as Asks["userInput"]["data"]);
    case "permission":
      return permission(data as Asks["permission"]["data"], isShared);
    case "sampling":
      return sampling(data as Asks["sampling"]["data"]);
    case "roots":
      return { request: { method: "roots/list", params: {} }, requires: { roots: {} }, read: (response) => withList(response, "roots") };
    default:
      return undefined;
  }
}

/**
 * The required capabilities that a client has not declared. Undefined: none is missing. A bare `elicitation: {}` declares forms,
 * as it did before there were other modes.
 */
export function missingCapabilities(required: DeclaredCapabilities, declared: DeclaredCapabilities): DeclaredCapabilities | undefined {
  const missing = Object.entries(required).flatMap(([name, parts]): [string, unknown][] => {
    const has = Object.hasOwn(declared, name) ? declared[name] : undefined;
    if (!isRecord(has)) return [[name, parts]];
    const lacking = Object.keys(isRecord(parts) ? parts : {}).filter((part) => !isDeclared(name, part, has));
    return lacking.length === 0 ? [] : [[name, Object.fromEntries(lacking.map((part) => [part, {}]))]];
  });
  return missing.length === 0 ? undefined : Object.fromEntries(missing);
}

function isDeclared(name: string, part: string, has: Readonly<Record<string, unknown>>): boolean {
  if (Object.hasOwn(has, part)) return true;
  return name === "elicitation" && part === "form" && !Object.hasOwn(has, "url");
}

const form: DeclaredCapabilities = { elicitation: { form: {} } };

function elicitation({ message, requestedSchema, url }: Asks["elicitation"]["data"]): ClientQuestion {
  if (url === undefined) return formQuestion(message, requestedSchema ?? { type: "object", properties: {} }, (answer) => answer);
  const params = { mode: "url", message, url, elicitationId: randomUUID() };
  return { request: { method: "elicitation/create", params }, requires: { elicitation: { url: {} } }, read: readAction };
}

function userInput({ question, choices = [], allowFreeform }: Asks["userInput"]["data"]): ClientQuestion {
  const isOpen = choices.length === 0 || allowFreeform === true;
  const hint = isOpen && choices.length > 0 ? { description: `For example: ${choices.join(", ")}` } : {};
  const answer = { type: "string", title: "Answer", ...(isOpen ? hint : { enum: [...choices] }) };
  const schema = { type: "object", properties: { answer }, required: ["answer"] };
  return formQuestion(question, schema, ({ action, content }) => {
    if (action !== "accept") return noAnswer;
    const text = String(content?.["answer"]);
    return { answer: text, wasFreeform: !choices.includes(text) };
  });
}

// Means to the session that the client was asked and did not answer.
const noAnswer: { readonly kind: "no-result" } = Object.freeze({ kind: "no-result" });

function permission(data: Asks["permission"]["data"], isShared: boolean): ClientQuestion {
  const { message, schema } = permissionForm(data, isShared);
  return formQuestion(message, schema, permissionAnswer);
}

function sampling(params: Asks["sampling"]["data"]): ClientQuestion {
  const usesTools = params["tools"] !== undefined || params["toolChoice"] !== undefined;
  return {
    request: { method: "sampling/createMessage", params },
    requires: { sampling: usesTools ? { tools: {} } : {} },
    read: (response) => (isRecord(response) && typeof response["model"] === "string" && "content" in response ? response : undefined),
  };
}

type ElicitationAnswer = Asks["elicitation"]["answer"];

function formQuestion(message: string, requestedSchema: JsonSchema, toAnswer: (answer: ElicitationAnswer) => unknown): ClientQuestion {
  const check = compileSchema(requestedSchema, { untrustedPatterns: true });
  return {
    request: { method: "elicitation/create", params: { mode: "form", message: escapeHidden(message), requestedSchema } },
    requires: form,
    read(response) {
      const answer = readAction(response);
      if (answer?.action !== "accept") return answer && toAnswer(answer);
      const content = check(answer.content);
      // Only very large content is checked asynchronously, and a user cannot have entered that.
      if (content instanceof Promise) return undefined;
      return content.ok ? toAnswer({ ...answer, content: content.value as Readonly<Record<string, unknown>> }) : undefined;
    },
  };
}

function readAction(response: unknown): ElicitationAnswer | undefined {
  if (!isRecord(response)) return undefined;
  const { action, content } = response;
  if (action !== "accept" && action !== "decline" && action !== "cancel") return undefined;
  return isRecord(content) ? { action, content } : { action };
}

function withList(response: unknown, key: string): unknown {
  return isRecord(response) && Array.isArray(response[key]) ? response : undefined;
}

/** The form that asks the user whether a call may run. */
interface PermissionForm {
  readonly message: string;
  readonly schema: JsonSchema;
}

const once = "allow once";
const unseen = "allow once, including the parts that are not shown";
const session = "allow for this session";
const deny = "deny";

/**
 * Creates the form for a permission request. When several clients share the session, none of them can allow calls for the whole
 * session; nor can a request be allowed for longer whose text is too long to be shown.
 */
function permissionForm(data: PermissionAsk, isShared: boolean): PermissionForm {
  const { text: message, isWhole } = permissionText(data);
  const allowed = isWhole ? (isShared ? [once] : [once, session]) : [unseen];
  const decision = { type: "string", title: "Decision", enum: [...allowed, deny] };
  return { message, schema: { type: "object", properties: { decision }, required: ["decision"] } };
}

function permissionAnswer({ action, content }: Asks["elicitation"]["answer"]): PermissionDecision {
  const decision = action === "accept" ? content?.["decision"] : deny;
  if (decision === once || decision === unseen) return { kind: "approve-once" };
  return decision === session ? { kind: "approve-for-session" } : { kind: "reject" };
}

/** Added to the result for the model when a call was denied because the client could not be asked. */
export const howToAllow =
  'Permission could not be requested: this client does not support elicitation. The operator of the server can allow calls: "skillhost mcp --allow <rule>", or --yes for all.';

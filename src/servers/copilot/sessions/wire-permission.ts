import { escapeHidden } from "../../../base/hidden-characters.ts";
import { isPlainRecord } from "../../../base/read-fields.ts";

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const recordOf =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isPlainRecord(value) && Object.entries(fields).every(([name, check]) => check(value[name]));

interface KindShape {
  /** Without these there is no telling what is asked. */
  readonly facts: Readonly<Record<string, Check>>;
  /** Fields that clients of the Copilot SDK insist on, and what they are where the tool says nothing of them. */
  readonly defaults?: Readonly<Record<string, readonly [Check, (request: Fields) => unknown]>>;
  /** Fields that may be there, and are left out where they are of another type. */
  readonly optional?: Readonly<Record<string, Check>>;
}

const intention = (request: Fields): unknown => request["toolDescription"] ?? request["description"] ?? "";
const bypass = { requestSandboxBypass: isFlag, requestSandboxBypassReason: isText };

const shapes: Readonly<Record<string, KindShape>> = {
  shell: {
    facts: { fullCommandText: isText },
    defaults: {
      intention: [isText, intention],
      commands: [listOf(recordOf({ identifier: isText, readOnly: isFlag })), () => []],
      possiblePaths: [listOf(isText), () => []],
      possibleUrls: [listOf(recordOf({ url: isText })), () => []],
      hasWriteFileRedirection: [isFlag, () => false],
      canOfferSessionApproval: [isFlag, () => false],
    },
    optional: { commandSegments: listOf(recordOf({ identifier: isText, fullCommandText: isText })), warning: isText, ...bypass },
  },
  write: {
    facts: { fileName: isText },
    defaults: { intention: [isText, intention], diff: [isText, () => ""], canOfferSessionApproval: [isFlag, () => false] },
    optional: { newFileContents: isText, ...bypass },
  },
  read: { facts: { path: isText }, defaults: { intention: [isText, intention] }, optional: bypass },
  url: { facts: { url: isText }, defaults: { intention: [isText, intention] }, optional: { redirectedFrom: isText, ...bypass } },
  mcp: {
    facts: { serverName: isText, toolName: isText },
    defaults: { toolTitle: [isText, ({ toolName }) => toolName], readOnly: [isFlag, () => false] },
  },
  memory: {
    facts: { fact: isText },
    optional: {
      action: (value) => value === "store" || value === "vote",
      subject: isText,
      citations: isText,
      direction: (value) => value === "upvote" || value === "downvote",
      reason: isText,
      scope: (value) => value === "repository" || value === "user",
    },
  },
  "custom-tool": { facts: { toolName: isText, toolDescription: isText }, optional: { skipPermission: isFlag } },
  hook: { facts: { toolName: isText }, optional: { hookMessage: isText } },
  "extension-management": { facts: { operation: isText }, optional: { extensionName: isText } },
};

/**
 * A permission request as clients of the Copilot SDK know it: SDKs of strict languages hear of no request that lacks a
 * field, and then nobody ever answers it. What a tool says of its call in words of its own is a call of a custom tool.
 */
export function toWireRequest(request: unknown): Fields {
  const fields = isPlainRecord(request) ? request : {};
  const kind = String(fields["kind"]);
  const shape = Object.hasOwn(shapes, kind) ? shapes[kind]! : undefined;
  if (shape === undefined || !recordOf(shape.facts)(fields)) return asCustomTool(fields);
  const wrong = Object.entries(shape.optional ?? {}).filter(([name, check]) => name in fields && !check(fields[name]));
  const missing = Object.entries(shape.defaults ?? {}).filter(([name, [check]]) => !check(fields[name]));
  if (wrong.length === 0 && missing.length === 0) return fields;
  const without = new Set(wrong.map(([name]) => name));
  const kept = Object.entries(fields).filter(([name]) => !without.has(name));
  return Object.fromEntries([...kept, ...missing.map(([name, [, fallback]]) => [name, fallback(fields)])]);
}

/**
 * What is shown to a person: a server's tool by the server's own name for it, and nothing that cannot be seen. The request
 * itself, for programs, is as it is.
 */
export function toPromptRequest(request: unknown): Fields {
  const fields = withHiddenEscaped(toWireRequest(request)) as Fields;
  if (fields["kind"] === "shell") {
    const commandIdentifiers = (fields["commands"] as readonly { readonly identifier: string }[]).map(({ identifier }) => identifier);
    return { ...fields, kind: "commands", commandIdentifiers };
  }
  if (fields["kind"] !== "mcp") return fields;
  const [prefix, name] = [`${String(fields["serverName"])}-`, String(fields["toolName"])];
  return name.startsWith(prefix) ? { ...fields, toolName: name.slice(prefix.length) } : fields;
}

const maxDepth = 64;

function withHiddenEscaped(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return escapeHidden(value);
  if (typeof value !== "object" || value === null || depth > maxDepth) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => withHiddenEscaped(item, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [escapeHidden(key), withHiddenEscaped(item, depth + 1)]));
}

function asCustomTool(fields: Fields): Fields {
  const { toolName, toolCallId, toolDescription, description, args, toolArgs } = fields;
  const said = isText(toolDescription) ? toolDescription : isText(description) ? description : "";
  return { kind: "custom-tool", toolCallId, toolName: String(toolName ?? ""), toolDescription: said, args: args ?? toolArgs ?? {} };
}

const approvals: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  commands: { commandIdentifiers: listOf(isText) },
  read: {},
  write: {},
  memory: {},
  mcp: { serverName: isText, toolName: (value) => value === null || isText(value) },
  "custom-tool": { toolName: isText },
};

/** How a request was decided: an approval that names nothing that lasts is one of this call. */
export function toWireResult(result: unknown): unknown {
  if (!isPlainRecord(result)) return result;
  const { kind, approval, locationKey, rules } = result;
  if (kind === "denied-by-rules" && Array.isArray(rules)) {
    return { ...result, rules: rules.map((rule) => (isPlainRecord(rule) ? { ...rule, argument: rule["argument"] ?? null } : rule)) };
  }
  if (kind !== "approved-for-session" && kind !== "approved-for-location") return result;
  const wanted = isPlainRecord(approval) && isText(approval["kind"]) ? approvals[String(approval["kind"])] : undefined;
  const isWhole = wanted !== undefined && recordOf(wanted)(approval) && (kind === "approved-for-session" || isText(locationKey));
  return isWhole ? result : { kind: "approved" };
}

import { isRecord } from "../../base/json.ts";
import type { PermissionAsk, PermissionDecision, PermissionRequest, Tool } from "../../tools/tool.ts";
import type { ApprovalKey } from "../../trust/approvals.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import { approvableWords } from "./command-line-rules.ts";
import { hostOf } from "./permission-patterns.ts";
import { commandsOf, urlsOf } from "./permission-rules.ts";

/** A call that may have been approved before. */
export interface ApprovableCall {
  readonly tool: Tool;
  /** What was or would be asked: the tool's own description of the call, or the one made for it. */
  readonly request: PermissionRequest;
}

/** What may be remembered of an answer. */
export interface ApprovalGrant extends ApprovalKey {
  /** For people who review what they approved. */
  readonly detail: {
    readonly tool: string;
    readonly origin: string;
    readonly identity?: string;
    readonly contract?: string;
    readonly approval: Pattern;
  };
}

/**
 * What a call needs to have been approved: of each list one. It goes by what the call would do: reading, writing, these
 * commands, this host. What cannot be classified is approved as exactly this request. Undefined: it is asked for each time.
 */
export function approvalsFor(call: ApprovableCall): readonly (readonly ApprovalKey[])[] | undefined {
  const { tool, request } = call;
  if (!kindsByRequest.get(request.kind)?.isByTool || request["canOfferSessionApproval"] === false) return keysFor(call);
  const known = knownKeys.get(tool) ?? new Map<string, readonly (readonly ApprovalKey[])[] | undefined>();
  knownKeys.set(tool, known);
  if (!known.has(request.kind)) known.set(request.kind, keysFor(call));
  return known.get(request.kind);
}

// The digests cost more than the rest of a call.
const knownKeys = new WeakMap<Tool, Map<string, readonly (readonly ApprovalKey[])[] | undefined>>();

function keysFor(call: ApprovableCall): readonly (readonly ApprovalKey[])[] | undefined {
  const wider = widerPatterns(call).map((pattern) => keyOf(call, pattern, true));
  return patternsOf(call)?.map((pattern) => [keyOf(call, pattern, false), keyOf(call, pattern, true), ...wider]);
}

/** Under what earlier versions, which went by names alone, kept an approval of this tool. Nothing is allowed by these. */
export function outdatedApprovals(call: ApprovableCall): readonly ApprovalKey[] {
  const { definition, origin } = call.tool;
  const subject = originOf(origin);
  const keysOf = (approval: Pattern): readonly ApprovalKey[] =>
    [definition.name, subject].map((id) => ({ kind: "tool-permission", id, digest: digestOf({ origin: subject, approval }) }));
  return [...(patternsOf(call) ?? []), ...widerPatterns(call)].flatMap(keysOf);
}

/**
 * What an answer approves beyond its own call. Undefined: it names something that this call is not, or the call cannot
 * be approved for longer. Without a pattern of its own it is about the tool of this call only; with one, about all
 * tools of the same source, as with "all reading" in the Copilot SDK.
 */
export function grantsOf(decision: PermissionDecision, call: ApprovableCall): readonly ApprovalGrant[] | undefined {
  const own = patternsOf(call);
  if (own === undefined || !("kind" in decision)) return undefined;
  const { approval, domain } = decision as { readonly approval?: unknown; readonly domain?: unknown };
  const given = approval ?? (domain === undefined || domain === null ? undefined : { kind: "url", domain });
  if (given === undefined) return own.map((pattern) => grantOf(call, pattern, false));
  const patterns = readAnswer(given, call);
  return patterns?.map((pattern) => grantOf(call, pattern, true));
}

/**
 * In words, what an answer for longer than one call allows, if it names nothing itself. Undefined: the call can be allowed only once,
 * since a hook, or the tool, asks about each call.
 */
export function lastingApprovalText(ask: PermissionAsk): string | undefined {
  if (ask.kind === "hook" || ask["canOfferSessionApproval"] === false) return undefined;
  const tool = `tool "${ask.toolName}"`;
  // What cannot be classified is approved as exactly this request.
  return kindsByRequest.get(ask.kind)?.lastingText(ask, tool) ?? `calls of ${tool} that request exactly this`;
}

/** What an approval covers that answers no call: of the tools that it can be about, every source once. None: it is about none of them. */
export function grantsFor(approval: unknown, tools: Iterable<Tool>): readonly ApprovalGrant[] {
  const fields: Fields = isRecord(approval) ? { ...approval } : {};
  const kind = approvalKinds.get(fields["kind"]);
  const patterns = kind?.read?.(fields) ?? [];
  const concerned = patterns.length === 0 ? [] : [...tools].filter((tool) => kind?.concerns(tool, fields));
  const grants = concerned.flatMap((tool) => patterns.map((pattern) => grantOf({ tool, request: { kind: pattern.kind } }, pattern, true)));
  return [...new Map(grants.map((grant) => [`${grant.id} ${grant.digest}`, grant])).values()];
}

/** What one approval covers, as the Copilot SDK writes it; a command each. */
type Pattern = Readonly<Record<string, unknown>> & { readonly kind: string };

type Fields = Readonly<Record<string, unknown>>;

/** The approvals of one kind. */
interface ApprovalKind {
  /** The kind of the requests that the approval answers. */
  readonly requestKind: string;
  /** Whether the patterns of a call depend on its tool alone. */
  readonly isByTool: boolean;
  /** What a call needs approved. Undefined: its parts are unknown, so it can only be approved as a whole. */
  patternsOf(call: ApprovableCall): readonly Pattern[] | undefined;
  /** What an approval of all these patterns allows, in words. Undefined: as above. */
  lastingText(request: PermissionRequest, tool: string): string | undefined;
  /** A pattern of more than one tool that also covers the calls of this tool. */
  widerPattern?(tool: Tool): Pattern;
  /** Reads the approval in an answer. Undefined: it does not cover the call that it answers, so it is a mistake or an attack. */
  readAnswer(approval: Fields, call: ApprovableCall): readonly Pattern[] | undefined;
  /** Reads an approval that answers no call. Undefined: it is invalid. Absent: such approvals do not exist. */
  read?(approval: Fields): readonly Pattern[] | undefined;
  /** Whether an approval that answers no call can be about a tool. */
  concerns(tool: Tool, approval: Fields): boolean;
}

// A tool that reads, writes or runs commands describes its calls itself; a server's tool does so only as a server's tool.
const isOwnTool = ({ origin }: Tool): boolean => origin.kind !== "mcp";

const everyCall = (_request: PermissionRequest, tool: string): string => `every call of ${tool}, while its definition stays the same`;

const wholeKind = (kind: string, lastingText: ApprovalKind["lastingText"]): ApprovalKind => ({
  requestKind: kind,
  isByTool: true,
  patternsOf: () => [{ kind }],
  lastingText,
  readAnswer: () => [{ kind }],
  read: () => [{ kind }],
  concerns: isOwnTool,
});

/** By the names in approvals, of which the SDK's `commands` answers requests of the kind `shell`. */
const approvalKinds: ReadonlyMap<unknown, ApprovalKind> = new Map<unknown, ApprovalKind>([
  ["read", wholeKind("read", (_request, tool) => `everything that ${tool} reads`)],
  ["write", wholeKind("write", (_request, tool) => `everything that ${tool} writes`)],
  ["memory", wholeKind("memory", everyCall)],
  [
    "custom-tool",
    {
      requestKind: "custom-tool",
      isByTool: true,
      patternsOf: ({ tool }) => [customToolPattern(tool.definition.name)],
      lastingText: everyCall,
      readAnswer: ({ toolName }, { tool }) => (toolName === tool.definition.name ? [customToolPattern(toolName)] : undefined),
      read: ({ toolName }) => (typeof toolName === "string" ? [customToolPattern(toolName)] : undefined),
      concerns: (tool, { toolName }) => isOwnTool(tool) && tool.definition.name === toolName,
    },
  ],
  [
    "mcp",
    {
      requestKind: "mcp",
      isByTool: true,
      patternsOf: ({ tool }) => [mcpPattern(tool.origin.source, tool.origin.nativeName)],
      lastingText: everyCall,
      widerPattern: ({ origin }) => mcpPattern(origin.source, null),
      readAnswer: readMcpAnswer,
      read: ({ serverName, toolName }) =>
        typeof serverName === "string" ? [mcpPattern(serverName, typeof toolName === "string" ? toolName : null)] : undefined,
      concerns: ({ origin, definition }, { serverName, toolName }) =>
        origin.kind === "mcp" &&
        origin.source === serverName &&
        (typeof toolName !== "string" || toolName === origin.nativeName || toolName === definition.name),
    },
  ],
  [
    "commands",
    {
      requestKind: "shell",
      isByTool: false,
      patternsOf: ({ request }) => commandPatterns(approvableWords(commandsOf(request))),
      lastingText: (request, tool) =>
        quoted(approvableWords(commandsOf(request)), (words) => `commands of ${tool} that begin with ${words}`),
      readAnswer: readCommandAnswer,
      read: ({ commandIdentifiers }) => commandPatterns(readIdentifiers(commandIdentifiers)),
      concerns: isOwnTool,
    },
  ],
  [
    "url",
    {
      requestKind: "url",
      isByTool: false,
      patternsOf: ({ request }) => hostsOf(request)?.map(urlPattern),
      lastingText: (request, tool) => quoted(hostsOf(request), (hosts) => `every request of ${tool} to ${hosts}`),
      readAnswer({ domain }, { request }) {
        const hosts = hostsOf(request);
        return hosts?.length === 1 && hosts[0] === String(domain).toLowerCase() ? hosts.map(urlPattern) : undefined;
      },
      concerns: isOwnTool,
    },
  ],
]);

const kindsByRequest: ReadonlyMap<string, ApprovalKind> = new Map(
  [...approvalKinds.values()].map((kind) => [kind.requestKind, kind] as const),
);

/** What a call needs approved; what cannot be classified, as exactly this request. Undefined: no approval can be remembered. */
function patternsOf(call: ApprovableCall): readonly Pattern[] | undefined {
  const { request } = call;
  if (request["canOfferSessionApproval"] === false) return undefined;
  return kindsByRequest.get(request.kind)?.patternsOf(call) ?? [{ kind: request.kind, request: withoutCallId(request) }];
}

function widerPatterns({ tool, request }: ApprovableCall): readonly Pattern[] {
  const pattern = kindsByRequest.get(request.kind)?.widerPattern?.(tool);
  return pattern === undefined ? [] : [pattern];
}

function readAnswer(given: unknown, call: ApprovableCall): readonly Pattern[] | undefined {
  const approval: Fields = isRecord(given) ? { ...given } : {};
  const kind = approvalKinds.get(approval["kind"]);
  return kind?.requestKind === call.request.kind ? kind.readAnswer(approval, call) : undefined;
}

/** Each once. Undefined: one of the addresses is invalid. */
function hostsOf(request: PermissionRequest): readonly string[] | undefined {
  const urls = urlsOf(request);
  return urls.every((url) => url !== undefined) ? [...new Set(urls.map(hostOf))] : undefined;
}

function customToolPattern(toolName: string): Pattern {
  return { kind: "custom-tool", toolName };
}

function mcpPattern(serverName: string, toolName: string | null): Pattern {
  return { kind: "mcp", serverName, toolName };
}

function urlPattern(domain: string): Pattern {
  return { kind: "url", domain };
}

function quoted(names: readonly string[] | undefined, text: (names: string) => string): string | undefined {
  return names && text([...new Set(names)].map((name) => JSON.stringify(name)).join(", "));
}

function commandPatterns(commandIdentifiers: readonly string[] | undefined): readonly Pattern[] | undefined {
  return commandIdentifiers && [...new Set(commandIdentifiers)].map((commandIdentifier) => ({ kind: "commands", commandIdentifier }));
}

function readIdentifiers(identifiers: unknown): readonly string[] | undefined {
  if (!Array.isArray(identifiers) || identifiers.length > 100) return undefined;
  return identifiers.filter((identifier): identifier is string => typeof identifier === "string" && identifier !== "");
}

function readCommandAnswer({ commandIdentifiers }: Fields, { request }: ApprovableCall): readonly Pattern[] | undefined {
  const approved = readIdentifiers(commandIdentifiers);
  const asked = approvableWords(commandsOf(request));
  return asked?.every((identifier) => approved?.includes(identifier)) ? commandPatterns(approved) : undefined;
}

function readMcpAnswer({ serverName, toolName }: Fields, { tool: { origin, definition } }: ApprovableCall): readonly Pattern[] | undefined {
  if (serverName !== origin.source) return undefined;
  if (toolName === null || toolName === undefined) return [mcpPattern(origin.source, null)];
  return toolName === origin.nativeName || toolName === definition.name ? [mcpPattern(origin.source, origin.nativeName)] : undefined;
}

function grantOf(call: ApprovableCall, approval: Pattern, isWide: boolean): ApprovalGrant {
  const { definition, origin, signature } = call.tool;
  const { identity } = origin;
  const detail = {
    tool: definition.name,
    origin: originOf(origin),
    ...(identity !== undefined && { identity }),
    ...(coversOneTool(call.tool, approval, isWide) && { contract: signature }),
    approval,
  };
  return { ...keyOf(call, approval, isWide), detail };
}

/** A source by its identity, or a tool of it by its contract, too. Names are for people: anybody can take them. */
function keyOf({ tool }: ApprovableCall, approval: Pattern, isWide: boolean): ApprovalKey {
  const { definition, origin, signature } = tool;
  const source = originOf(origin);
  const subject = { source, identity: origin.identity, contract: coversOneTool(tool, approval, isWide) ? signature : undefined };
  return { kind: "tool-permission", id: isWide ? source : definition.name, digest: digestOf({ subject, approval }) };
}

/**
 * Whether an approval is about the contract of this tool. One of a whole source is not, but two sources with the same name
 * and without an identity cannot be distinguished: what clients push, above all.
 */
function coversOneTool({ origin }: Tool, { toolName }: Pattern, isWide: boolean): boolean {
  const isSource = origin.identity !== undefined || origin.kind === "builtin";
  return !isWide || !isSource || typeof toolName === "string";
}

function originOf({ kind, source }: Tool["origin"]): string {
  return `${kind}:${source}`;
}

/** Two equal requests differ in the call that they are about, and in nothing else. */
function withoutCallId({ toolCallId: _, ...request }: PermissionRequest): object {
  return request;
}

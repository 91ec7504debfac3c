import { isRecord } from "../../base/json.ts";
import type { PermissionDecision, PermissionRequest, Tool } from "../../tools/tool.ts";
import type { ApprovalKey } from "../../trust/approvals.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import { hostOf } from "./permission-patterns.ts";
import { commandsOf, urlsOf } from "./permission-rules.ts";
import { toldWhole } from "./permission-shell.ts";

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
  if (!kindsByTool.has(request.kind) || request["canOfferSessionApproval"] === false) return keysFor(call);
  const known = knownKeys.get(tool) ?? new Map<string, readonly (readonly ApprovalKey[])[] | undefined>();
  knownKeys.set(tool, known);
  if (!known.has(request.kind)) known.set(request.kind, keysFor(call));
  return known.get(request.kind);
}

// What is approved of these kinds depends on the tool alone, and the digests cost more than the rest of a call.
const kindsByTool: ReadonlySet<string> = new Set(["read", "write", "memory", "mcp", "custom-tool"]);
const knownKeys = new WeakMap<Tool, Map<string, readonly (readonly ApprovalKey[])[] | undefined>>();

function keysFor(call: ApprovableCall): readonly (readonly ApprovalKey[])[] | undefined {
  const server = call.request.kind === "mcp" ? [keyOf(call, mcpPattern(call.tool, null), true)] : [];
  return patternsOf(call)?.map((pattern) => [keyOf(call, pattern, false), keyOf(call, pattern, true), ...server]);
}

/** Under what earlier versions, which went by names alone, kept an approval of this tool. Nothing is allowed by these. */
export function outdatedApprovals({ tool, request }: ApprovableCall): readonly ApprovalKey[] {
  const { definition, origin } = tool;
  const subject = originOf(origin);
  const keysOf = (approval: Pattern): readonly ApprovalKey[] =>
    [definition.name, subject].map((id) => ({ kind: "tool-permission", id, digest: digestOf({ origin: subject, approval }) }));
  const ofServer = request.kind === "mcp" ? [mcpPattern(tool, null)] : [];
  return [...(patternsOf({ tool, request }) ?? []), ...ofServer].flatMap(keysOf);
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
  const patterns = readApproval(given, call);
  return patterns?.map((pattern) => grantOf(call, pattern, true));
}

/** What an approval covers that answers no call: of the tools that it can be about, every source once. None: it is about none of them. */
export function grantsFor(approval: unknown, tools: Iterable<Tool>): readonly ApprovalGrant[] {
  const fields = isRecord(approval) ? approval : {};
  const patterns = approvedPatterns(fields);
  const concerned = patterns === undefined ? [] : [...tools].filter((tool) => isConcerned(fields, tool));
  const grants = concerned.flatMap((tool) =>
    (patterns ?? []).map((pattern) => grantOf({ tool, request: { kind: pattern.kind } }, pattern, true)),
  );
  return [...new Map(grants.map((grant) => [`${grant.id} ${grant.digest}`, grant])).values()];
}

function approvedPatterns({
  kind,
  commandIdentifiers,
  serverName,
  toolName,
}: Readonly<Record<string, unknown>>): readonly Pattern[] | undefined {
  if (kind === "read" || kind === "write" || kind === "memory") return [{ kind }];
  if (kind === "custom-tool" && typeof toolName === "string") return [{ kind, toolName }];
  if (kind === "mcp" && typeof serverName === "string")
    return [{ kind, serverName, toolName: typeof toolName === "string" ? toolName : null }];
  if (kind !== "commands" || !Array.isArray(commandIdentifiers) || commandIdentifiers.length > 100) return undefined;
  return commandIdentifiers.filter((id): id is string => typeof id === "string" && id !== "").map(commandPattern);
}

function isConcerned({ kind, serverName, toolName }: Readonly<Record<string, unknown>>, { origin, definition }: Tool): boolean {
  const isNamed = typeof toolName !== "string" || toolName === origin.nativeName || toolName === definition.name;
  if (kind === "mcp") return origin.kind === "mcp" && origin.source === serverName && isNamed;
  if (kind === "custom-tool") return origin.kind !== "mcp" && definition.name === toolName;
  // Who reads, writes and runs commands describes its calls itself; a server's tools do so only as a server's tools.
  return origin.kind !== "mcp";
}

/** What one approval covers, as the Copilot SDK writes it; a command each. */
type Pattern = Readonly<Record<string, unknown>> & { readonly kind: string };

/** What a call needs approved. Undefined: nothing that could be remembered. */
function patternsOf({ tool, request }: ApprovableCall): readonly Pattern[] | undefined {
  const { kind } = request;
  if (request["canOfferSessionApproval"] === false) return undefined;
  if (kind === "read" || kind === "write" || kind === "memory") return [{ kind }];
  if (kind === "mcp") return [mcpPattern(tool, tool.origin.nativeName)];
  if (kind === "custom-tool") return [{ kind, toolName: tool.definition.name }];
  if (kind === "shell") return commandPatterns(request);
  const hosts = kind === "url" ? hostsOf(request) : undefined;
  if (hosts !== undefined) return hosts.map((domain) => ({ kind: "url", domain }));
  return [{ kind, request: withoutCallId(request) }];
}

/** Each once. Undefined: one of the addresses is invalid. */
function hostsOf(request: PermissionRequest): readonly string[] | undefined {
  const urls = urlsOf(request);
  return urls.every((url) => url !== undefined) ? [...new Set(urls.map(hostOf))] : undefined;
}

function mcpPattern({ origin }: Tool, toolName: string | null): Pattern {
  return { kind: "mcp", serverName: origin.source, toolName };
}

/** The tool's own list of commands; without one exactly this line, since its parts are unknown. */
function commandPatterns(request: PermissionRequest): readonly Pattern[] {
  const listed = toldWhole(commandsOf(request));
  return listed === undefined ? [{ kind: "shell", request: withoutCallId(request) }] : [...new Set(listed)].map(commandPattern);
}

function commandPattern(commandIdentifier: string): Pattern {
  return { kind: "commands", commandIdentifier };
}

/** Reads the pattern of an answer. Undefined: it does not cover the call that it answers, so it is a mistake or an attack. */
function readApproval(given: unknown, call: ApprovableCall): readonly Pattern[] | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const { kind, ...rest } = { ...given } as Readonly<Record<string, unknown>>;
  const { tool, request } = call;
  if (kind === "commands") return request.kind === "shell" ? readCommandApproval(rest["commandIdentifiers"], request) : undefined;
  if (kind !== request.kind) return undefined;
  if (kind === "read" || kind === "write" || kind === "memory") return [{ kind }];
  if (kind === "custom-tool") return rest["toolName"] === tool.definition.name ? patternsOf(call) : undefined;
  if (kind === "mcp") return readMcpApproval(rest, tool);
  const hosts = kind === "url" ? hostsOf(request) : undefined;
  const [domain] = hosts ?? [];
  return hosts?.length === 1 && domain === String(rest["domain"]).toLowerCase() ? [{ kind: "url", domain }] : undefined;
}

function readCommandApproval(identifiers: unknown, request: PermissionRequest): readonly Pattern[] | undefined {
  if (!Array.isArray(identifiers) || identifiers.length > 100) return undefined;
  const approved = identifiers.filter((identifier): identifier is string => typeof identifier === "string" && identifier !== "");
  const asked = toldWhole(commandsOf(request));
  return asked?.every((identifier) => approved.includes(identifier)) ? [...new Set(approved)].map(commandPattern) : undefined;
}

function readMcpApproval({ serverName, toolName }: Readonly<Record<string, unknown>>, tool: Tool): readonly Pattern[] | undefined {
  const { source, nativeName } = tool.origin;
  if (serverName !== source) return undefined;
  if (toolName === null || toolName === undefined) return [mcpPattern(tool, null)];
  return toolName === nativeName || toolName === tool.definition.name ? [mcpPattern(tool, nativeName)] : undefined;
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
function coversOneTool({ origin }: Tool, { kind, toolName }: Pattern, isWide: boolean): boolean {
  const isSource = origin.identity !== undefined || origin.kind === "builtin";
  return !isWide || !isSource || kind === "custom-tool" || (kind === "mcp" && toolName !== null);
}

function originOf({ kind, source }: Tool["origin"]): string {
  return `${kind}:${source}`;
}

/** Two equal requests differ in the call that they are about, and in nothing else. */
function withoutCallId({ toolCallId: _, ...request }: PermissionRequest): object {
  return request;
}

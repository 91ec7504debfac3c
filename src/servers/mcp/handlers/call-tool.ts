import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  type StandardSchemaV1,
} from "@modelcontextprotocol/server";
import { isRecord } from "../../../base/json.ts";
import type { Logger } from "../../../base/logger.ts";
import { shorten } from "../../../base/text.ts";
import type { Tool, ToolResult } from "../../../tools/tool.ts";
import { type CallToolResultBlocks, toCallToolResult } from "../../../tools/tool-result.ts";
import type { ClientChannel, WithClient } from "../client-channel.ts";
import { howToAllow } from "../client-questions.ts";
import { schemaOf, toWireError } from "../fast-path-server.ts";
import { missingCapability } from "../input-required-calls.ts";
import type { ServedSession } from "../served-session.ts";

interface CallParams {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

/** The parameters of `tools/call`. Only the used ones are checked. */
export const callParams: StandardSchemaV1<CallParams, CallParams> = schemaOf(({ name, arguments: args }) => {
  if (typeof name !== "string") return "name must be a string";
  return args === undefined || isRecord(args) ? undefined : "arguments must be an object";
});

interface ToolCallerParts {
  readonly served: ServedSession;
  readonly server: Server;
  readonly withClient: WithClient;
  readonly isModern: boolean;
  readonly log: Logger;
}

/** Creates the handler of `tools/call`, which runs calls through the session's pipeline. */
export function createToolCaller(parts: ToolCallerParts): (params: CallParams, context: ServerContext) => Promise<CallToolResult> {
  const { served, server, withClient } = parts;
  return async ({ name, arguments: args = {} }, context) => {
    try {
      // MCP clients call a tool only by its listed name.
      const tool = findTool(served, name) ?? (await served.whenStarted(() => findTool(served, name)));
      if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Tool "${shorten(name, 200)}" does not exist.`);
      const { outputSchema } = tool.definition;
      const request = { method: "tools/call", name, arguments: args };
      const called = await withClient(request, context, (channel) => call(parts, tool, args, channel));
      return server.projectCallToolResult(called as CallToolResult, outputSchema);
    } catch (error) {
      throw toWireError(error, parts.log, `a call of tool "${shorten(name, 200)}"`);
    }
  };
}

function findTool({ session }: ServedSession, name: string): Tool | undefined {
  return session.catalog.executables.get(name);
}

async function call(
  { served, isModern }: ToolCallerParts,
  { definition: { name, outputSchema } }: Tool,
  args: unknown,
  channel: ClientChannel,
): Promise<CallToolResultBlocks> {
  const result = await served.session.callTool(name, args, channel);
  const { missing } = channel;
  if (isModern && missing !== undefined && result.resultType !== "success") throw missingCapability(missing);
  return toCallToolResult(advise(result, channel), { hasOutputSchema: outputSchema !== undefined });
}

/** Adds to a denied call how it can be allowed. */
function advise(result: ToolResult, { lackedPermission }: ClientChannel): ToolResult {
  if (!lackedPermission || result.resultType !== "denied") return result;
  return { ...result, textResultForLlm: `${result.textResultForLlm}\n${howToAllow}` };
}

/** A parameter that clients repeat as a header, so that proxies can route by it (`x-mcp-header` in its schema). */
interface HeaderParameter {
  readonly path: readonly string[];
  readonly header: string;
}

const ofSchemas = new WeakMap<object, readonly HeaderParameter[]>();

/**
 * Compares the `Mcp-Param-*` headers of a call with its arguments, as revision 2026-07-28 requires: a proxy must not decide by a
 * header that differs from the argument. Returns the name of a header that is missing or different.
 */
export function disagreeingHeader(schema: object, args: unknown, headers: Headers): string | undefined {
  for (const { path, header } of parametersOf(schema)) {
    const text = textOf(path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), args));
    if (text === undefined) continue;
    const given = decode(headers.get(header));
    if (given !== text && !areSameNumber(given, text)) return header;
  }
  return undefined;
}

function parametersOf(schema: object): readonly HeaderParameter[] {
  const known = ofSchemas.get(schema);
  if (known !== undefined) return known;
  const found: HeaderParameter[] = [];
  collect(schema, [], found);
  ofSchemas.set(schema, found);
  return found;
}

const maxDepth = 20;

function collect(schema: unknown, path: readonly string[], into: HeaderParameter[]): void {
  const properties = isRecord(schema) ? schema["properties"] : undefined;
  if (!isRecord(properties) || path.length >= maxDepth) return;
  for (const [key, property] of Object.entries(properties)) {
    const own = [...path, key];
    const name = isRecord(property) ? property["x-mcp-header"] : undefined;
    if (typeof name === "string" && /^[!#$%&'*+\-.^_`|~\w]+$/.test(name)) into.push({ path: own, header: `Mcp-Param-${name}` });
    collect(property, own, into);
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  return Number.isSafeInteger(value) ? String(value) : undefined;
}

// Values that a header cannot contain are encoded as `=?base64?…?=`. Invalid base64 is not a value.
function decode(value: string | null): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/s.exec(value ?? "")?.[1];
  if (encoded === undefined) return value ?? undefined;
  const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(encoded);
  return isBase64 ? Buffer.from(encoded, "base64").toString("utf8") : undefined;
}

function areSameNumber(given: string | undefined, text: string): boolean {
  return given !== undefined && /^-?\d+(\.\d+)?$/.test(given) && /^-?\d+$/.test(text) && Number(given) === Number(text);
}

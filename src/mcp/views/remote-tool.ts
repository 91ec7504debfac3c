import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { exactJson } from "../../base/untrusted-text.ts";
import { createTool } from "../../tools/create/create-tool.ts";
import type { ToolLike } from "../../tools/define/define-tool.ts";
import { copyAhead } from "../../tools/json-copy.ts";
import { checkSchema } from "../../tools/schema/check-schema.ts";
import { compileSchema, type JsonValidator } from "../../tools/schema/json-schema-validator.ts";
import type { PermissionRequest, ToolContext, ToolDefinition, ToolResult, ToolsFound } from "../../tools/tool.ts";
import { callToolResult, failureResult } from "../../tools/tool-result.ts";
import { callMetaOf } from "../../tools/tool-source.ts";
import type { CallRequestOptions } from "../connection/connection.ts";

/** The part of a server that tools need. */
export interface ToolCaller {
  callTool(name: string, args: Json, options?: CallRequestOptions): Promise<Json>;
}

export interface RemoteToolOptions {
  readonly server: ToolCaller;
  /** The server's name in the configuration. */
  readonly serverName: string;
  /** How the server is started or reached: what approvals of the tool are bound to. */
  readonly identity?: string;
  /** The tool's name for models. */
  readonly name: string;
  /** Milliseconds for a call. Undefined: the session's deadline. */
  readonly timeout: number | undefined;
  /** Identifies the connection: equal connections have the same value. */
  readonly generation: string;
}

/**
 * Creates the tool for a server's definition. Fields that a `ToolDefinition` does not have are in `metadata.mcp`. A
 * definition that cannot be a tool, or whose parameters are not a usable schema, results in a diagnostic instead. Fetches
 * nothing. Calls never reject because of the server: they return a failure.
 */
export function remoteTool(definition: Json, options: RemoteToolOptions): ToolsFound {
  const diagnostics: Diagnostic[] = [];
  const report = (diagnostic: Diagnostic): void => void diagnostics.push({ ...diagnostic, source: options.serverName });
  try {
    const checked = checkDefinition(definition, options, report);
    const { serverName: source, identity } = options;
    const origin = { kind: "mcp", source, nativeName: String(definition["name"]), ...(identity !== undefined && { identity }) } as const;
    const tool = createTool(checked, origin, { generation: options.generation, checkSchemas: false, onDiagnostic: report });
    return { tools: [tool], diagnostics };
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return { tools: [], diagnostics: [...diagnostics, leftOut(definition, options, error.message)] };
  }
}

// The longest text of a schema that can be compiled.
const maxDefinition = 1_000_000;

function checkDefinition(definition: Json, options: RemoteToolOptions, report: (diagnostic: Diagnostic) => void): ToolLike {
  const { name: nativeName, title, description, inputSchema, outputSchema, annotations, ...rest } = definition;
  if (lengthOf(definition) > maxDefinition) throw invalid(`it is larger than ${maxDefinition} characters`);
  const fault = checkSchema(inputSchema ?? {}, { untrustedPatterns: true }).find(({ severity }) => severity === "error");
  if (fault !== undefined) throw invalid(fault.message);
  const shared = { options, nativeName: String(nativeName), definition };
  const call = remoteCall(shared, outputSchemaOf(outputSchema, shared, report));
  return {
    name: options.name,
    title: title as string,
    description: description as string,
    parameters: inputSchema as object,
    outputSchema: call.outputSchema,
    annotations: annotations as object,
    // Under a key of their own, so that a server cannot set metadata that the host sets itself.
    metadata: Object.keys(rest).length === 0 ? undefined : { mcp: rest },
    timeout: options.timeout,
    handler: (args: unknown, _: unknown, context: ToolContext) => call.run(args, context),
    permission: (args: unknown, context: ToolContext) => permissionFor(args, context, shared),
  };
}

function lengthOf(definition: Json): number {
  try {
    return JSON.stringify(definition).length;
  } catch {
    // Nested too deep for the stack.
    throw invalid("it cannot be written as JSON");
  }
}

interface RemoteDefinition {
  readonly options: RemoteToolOptions;
  readonly nativeName: string;
  readonly definition: Json;
}

/** An invalid output schema is ignored: the tool works without it. */
function outputSchemaOf(
  schema: unknown,
  { options, nativeName }: RemoteDefinition,
  report: (diagnostic: Diagnostic) => void,
): Json | undefined {
  if (schema === undefined || schema === null) return undefined;
  const fault = checkSchema(schema, { of: "output", untrustedPatterns: true }).find(({ severity }) => severity === "error");
  if (fault === undefined) return schema as Json;
  const message = `MCP server "${options.serverName}", tool ${exactJson(nativeName)}: ${fault.message} The schema is ignored.`;
  report({ severity: "warning", code: "MCP_OUTPUT_SCHEMA", message });
  return undefined;
}

interface RemoteCall {
  readonly outputSchema: Json | undefined;
  run(args: unknown, context: ToolContext): Promise<ToolResult>;
}

function remoteCall({ options, nativeName, definition }: RemoteDefinition, outputSchema: Json | undefined): RemoteCall {
  const checkOutput = outputSchema === undefined ? undefined : compileSchema(outputSchema, { untrustedPatterns: true });
  return {
    outputSchema,
    async run(args, context) {
      const { server, serverName } = options;
      try {
        const raw = await server.callTool(nativeName, (args ?? {}) as Json, {
          signal: context.invocation.signal,
          meta: callMetaOf(context),
          onProgress: (update) => context.progress(progressOf(update)),
          context,
          definition,
        });
        for (const member of Object.values(raw)) {
          const copying = copyAhead(member);
          if (copying !== undefined) await copying;
        }
        return await noteMismatch(callToolResult(raw), checkOutput);
      } catch (error) {
        return failureOf(error, serverName);
      }
    },
  };
}

function progressOf({ progress, total, message }: Parameters<NonNullable<CallRequestOptions["onProgress"]>>[0]): {
  progress: number;
  total?: number;
  message?: string;
} {
  return { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
}

/** A result that does not fit the output schema is still returned; the mismatch is only logged. */
async function noteMismatch(result: ToolResult, check: JsonValidator | undefined): Promise<ToolResult> {
  if (check === undefined || result.resultType !== "success") return result;
  const note = await mismatchOf(result.structuredContent, check);
  if (note === undefined) return result;
  return { ...result, sessionLog: result.sessionLog === undefined ? note : `${result.sessionLog}\n${note}` };
}

async function mismatchOf(structured: unknown, check: JsonValidator): Promise<string | undefined> {
  if (structured === undefined) return "The tool has an output schema but returned no structured content.";
  const checked = await check(structured);
  if (checked.ok) return undefined;
  const faults = checked.issues.slice(0, 5).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return `The structured content does not match the tool's output schema: ${faults.join("; ")}`;
}

/** The contents of the Copilot SDK's permission requests of kind `mcp`. */
function permissionFor(
  args: unknown,
  { invocation }: ToolContext,
  { options, nativeName, definition }: RemoteDefinition,
): PermissionRequest {
  const { title, annotations } = definition as Pick<ToolDefinition, "title" | "annotations">;
  const hints = isRecord(annotations) ? annotations : {};
  const titles = [title, hints["title"], nativeName];
  return {
    kind: "mcp",
    toolCallId: invocation.toolCallId,
    serverName: options.serverName,
    toolName: options.name,
    toolTitle: titles.find((text) => typeof text === "string" && text !== ""),
    args,
    readOnly: hints["readOnlyHint"] === true,
  };
}

function leftOut({ name }: Json, { serverName }: RemoteToolOptions, why: string): Diagnostic {
  const shown = exactJson(String(name).slice(0, 80));
  const message = `MCP server "${serverName}", tool ${shown}: ${why} The tool is ignored. Ask the server's author to fix it.`;
  return { severity: "error", code: "MCP_TOOL_INVALID", source: serverName, message };
}

function invalid(why: string): HostError {
  return new HostError("TOOL_INVALID", why.endsWith(".") ? why : `${why}.`);
}

/**
 * The result of a call that failed. The model learns the kind of failure. Details go to the log: a path, an address, or
 * the server's own words for a protocol error.
 * @throws any error but a HostError of a request: it is a fault of the host.
 */
function failureOf(error: unknown, server: string): ToolResult {
  if (!(error instanceof HostError) || !error.code.startsWith("MCP_")) throw error;
  const sentence = sentences[error.code as keyof typeof sentences] ?? sentences.MCP_ERROR;
  return failureResult(sentence(server, numberOf(error)), {
    ...(error.code === "MCP_TIMEOUT" && { resultType: "timeout" }),
    error: `${error.code}: ${errorMessage(error)}`,
  });
}

const sentences = {
  MCP_TIMEOUT: (server) => `MCP server "${server}" did not answer in time. It is unknown whether the call took effect.`,
  MCP_CANCELLED: (server) => `The call of MCP server "${server}" was cancelled.`,
  MCP_CLOSED: (server) => `The connection to MCP server "${server}" ended before it answered. It is unknown whether the call took effect.`,
  MCP_NOT_RUN: notCalled,
  MCP_NOT_STARTED: notCalled,
  MCP_UNAVAILABLE: notCalled,
  MCP_UNAUTHORIZED: (server) => `MCP server "${server}" requires the user to sign in first, so the tool was not called.`,
  MCP_ANSWER: (server) => `MCP server "${server}" sent an invalid result. Detailed information is not available.`,
  MCP_ERROR: (server, code) => {
    if (code === invalidParams) return `MCP server "${server}" rejected the call: the arguments are not valid, or the tool does not exist.`;
    if (code === methodNotFound) return `MCP server "${server}" rejected the call: it no longer has tools.`;
    return `MCP server "${server}" answered with an error. Detailed information is not available.`;
  },
} satisfies Readonly<Record<string, (server: string, code: number | undefined) => string>>;

function notCalled(server: string): string {
  return `MCP server "${server}" is not running, so the tool was not called. Continue without it, or inform the user.`;
}

// Error codes of JSON-RPC.
const methodNotFound = -32601;
const invalidParams = -32602;

/** The error code that the server returned. */
function numberOf({ cause }: HostError): number | undefined {
  if (typeof cause !== "object" || cause === null) return undefined;
  const { code } = cause as { readonly code?: unknown };
  return typeof code === "number" ? code : undefined;
}

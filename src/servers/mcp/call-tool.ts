import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  type StandardSchemaV1,
} from "@modelcontextprotocol/server";
import type { Logger } from "../../base/logger.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { type CallToolResultBlocks, toCallToolResult } from "../../tools/call-tool-result.ts";
import type { Tool, ToolResult } from "../../tools/tool.ts";
import type { Conversation, Converse } from "./conversation.ts";
import { schemaOf } from "./param-schema.ts";
import { howToAllow } from "./permission-form.ts";
import { missingCapability } from "./round-trips.ts";
import type { ServedSession } from "./served-session.ts";
import { toWireError } from "./wire-errors.ts";

export interface CallParams {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

/** The parameters of `tools/call`, checked as far as they are used. */
export const callParams: StandardSchemaV1<CallParams, CallParams> = schemaOf(({ name, arguments: args }) => {
  if (typeof name !== "string") return "name must be a text";
  return args === undefined || isPlainRecord(args) ? undefined : "arguments must be an object";
});

export interface ToolCallerParts {
  readonly served: ServedSession;
  readonly server: Server;
  readonly converse: Converse;
  readonly isModern: boolean;
  readonly log: Logger;
}

/** Handles `tools/call`: through the session's pipeline, in a conversation with the client. */
export function createToolCaller(parts: ToolCallerParts): (params: CallParams, context: ServerContext) => Promise<CallToolResult> {
  const { served, server, converse } = parts;
  return async ({ name, arguments: args = {} }, context) => {
    try {
      // Here a tool is called by the name that the list has for it, and by no other.
      const tool = findTool(served, name) ?? (await served.whenStarted(() => findTool(served, name)));
      if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool "${shortened(name)}".`);
      const { outputSchema } = tool.definition;
      const request = { method: "tools/call", name, arguments: args };
      const called = await converse(request, context, (conversation) => call(parts, tool, args, conversation));
      return server.projectCallToolResult(called as CallToolResult, outputSchema);
    } catch (error) {
      throw toWireError(error, parts.log, `a call of tool "${shortened(name)}"`);
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
  conversation: Conversation,
): Promise<CallToolResultBlocks> {
  const result = await served.session.callTool(name, args, conversation);
  const { missing } = conversation;
  if (isModern && missing !== undefined && result.resultType !== "success") throw missingCapability(missing);
  return toCallToolResult(advise(result, conversation), { hasOutputSchema: outputSchema !== undefined });
}

/** Whoever reads that a call was denied should learn how it can be allowed. */
function advise(result: ToolResult, { lackedPermission }: Conversation): ToolResult {
  if (!lackedPermission || result.resultType !== "denied") return result;
  return { ...result, textResultForLlm: `${result.textResultForLlm}\n${howToAllow}` };
}

// The name comes from outside, and the message goes into logs.
function shortened(name: string): string {
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}

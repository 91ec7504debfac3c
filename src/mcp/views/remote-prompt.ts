import { HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { withoutHidden } from "../../base/untrusted-text.ts";
import { assemblePrompt } from "../../tools/create/create-prompt.ts";
import { type CompletionLike, complete } from "../../tools/define/define-prompt.ts";
import { copyJson } from "../../tools/json-copy.ts";
import type {
  Completion,
  CompletionContext,
  ContentBlock,
  OfferContext,
  Prompt,
  PromptArgument,
  PromptDefinition,
  PromptMessage,
  PromptResult,
} from "../../tools/prompt.ts";
import type { ToolContext } from "../../tools/tool.ts";
import type { CallRequestOptions, RequestOptions } from "../connection/connection.ts";

/** The part of a server that suggestions need. */
export interface CompletionServer {
  complete(params: Json, options?: RequestOptions): Promise<Json>;
}

/** The part of a server that prompts need. */
interface PromptServer extends CompletionServer {
  getPrompt(name: string, args: Readonly<Record<string, string>>, options?: CallRequestOptions): Promise<Json>;
}

interface RemotePromptOptions {
  readonly server: PromptServer;
  /** The server's name in the configuration. */
  readonly serverName: string;
  /** Identifies the connection: equal connections have the same value. */
  readonly generation: string;
  /** Whether the server suggests values of arguments. */
  readonly hasCompletions: boolean;
}

/** Creates the prompt for a server's definition, under the server's own name for it. Undefined: it has no name. */
export function remotePrompt(raw: Json, options: RemotePromptOptions): Prompt | undefined {
  const definition = readDefinition(raw);
  if (definition === undefined) return undefined;
  const { server, serverName, generation, hasCompletions } = options;
  const { name } = definition;
  return assemblePrompt({
    definition,
    origin: { kind: "mcp", source: serverName, nativeName: name },
    generation: () => generation,
    async make(args, context) {
      return readPromptResult(await server.getPrompt(name, args, callContextOf(context, name, args)), serverName);
    },
    ...(hasCompletions && {
      complete: (argument, value, context) => completeRemotely(server, { type: "ref/prompt", name }, { name: argument, value }, context),
    }),
  });
}

/** Asks a server for suggestions. Rejects with a TypeError when the result is not a list of texts. */
export function completeRemotely(
  server: CompletionServer,
  ref: Json,
  argument: { readonly name: string; readonly value: string },
  context: CompletionContext,
): Promise<Completion> {
  const others = Object.keys(context.arguments).length === 0 ? {} : { context: { arguments: context.arguments } };
  const ask = async (): Promise<CompletionLike> => {
    const { completion } = await server.complete({ ref, argument, ...others }, { signal: context.signal });
    return completion as CompletionLike;
  };
  return complete(ask, argument.value, context);
}

function readDefinition({ name, title, description, arguments: args }: Json): PromptDefinition | undefined {
  if (typeof name !== "string" || name === "") return undefined;
  const named = Array.isArray(args) ? args.map(readArgument).filter((argument) => argument !== undefined) : [];
  return Object.freeze({ name, ...texts({ title, description }), ...(named.length > 0 && { arguments: Object.freeze(named) }) });
}

function readArgument(raw: unknown): PromptArgument | undefined {
  if (!isRecord(raw) || typeof raw["name"] !== "string" || raw["name"] === "") return undefined;
  const { name, title, description, required } = raw;
  return Object.freeze({ name, ...texts({ title, description }), ...(required === true && { required }) });
}

/** Those of the fields that are texts, without hidden characters. */
export function texts<K extends string>(fields: Readonly<Record<K, unknown>>): { readonly [Key in K]?: string } {
  const given = Object.entries(fields).flatMap(([key, value]) => (typeof value === "string" ? [[key, withoutHidden(value)]] : []));
  return Object.fromEntries(given) as { [Key in K]?: string };
}

function readPromptResult(raw: Json, serverName: string): PromptResult {
  const copy = copyJson(raw["messages"]);
  if (!copy.ok || !Array.isArray(copy.value) || !copy.value.every(isMessage)) {
    throw new HostError("MCP_ANSWER", `MCP server "${serverName}" sent an invalid prompt.`);
  }
  return Object.freeze({ ...texts({ description: raw["description"] }), messages: copy.value });
}

function isMessage(value: unknown): value is PromptMessage {
  if (!isRecord(value) || (value["role"] !== "user" && value["role"] !== "assistant")) return false;
  const content = value["content"] as ContentBlock | undefined;
  return isRecord(content) && typeof content.type === "string";
}

/**
 * Options of a request for a prompt or a resource: while it answers, a server may ask its client, as during a call. Only
 * `ask` of the context is used, since there is no call.
 */
export function callContextOf({ signal, ask, services }: OfferContext, name: string, args: unknown): CallRequestOptions {
  const context: ToolContext = {
    invocation: { sessionId: "", toolCallId: "", toolName: name, arguments: args, signal, workingDirectory: "", services },
    ask,
    callTool: () => Promise.reject(new HostError("CALL_FOREIGN", "A server cannot call tools while it provides a prompt or a resource.")),
    progress: () => {},
    fileChanged: () => {},
    background: () => {},
  };
  return { signal, context };
}

import { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool, type ToolRunnableConfig } from "@langchain/core/tools";
import { encodeParameters, imageUrl } from "../models/encode-parts.ts";
import type { Session } from "../session/session.ts";
import type { ToolDefinition } from "../tools/tool.ts";
import { type ModelCallResult, onceForEach, type RunCallsOptions, runModelCall } from "./run-model-calls.ts";

/** An array of tools that is kept up to date until it is disposed of. */
export type LangChainTools = DynamicStructuredTool[] & Disposable;

/**
 * Offers a session's tools to LangChain (https://docs.langchain.com), for `model.bindTools` and agents. The array is updated in
 * place when the session's tools change, until it is disposed of. A call that fails or is denied returns a `ToolMessage` with
 * status `error` and the reason; without a tool call, `invoke` throws it.
 * @param options are those of each call; the call's own signal also cancels it.
 *
 * ```ts
 * using tools = toLangChainTools(session);
 * const answer = await model.bindTools(tools).invoke(messages);
 * ```
 */
export function toLangChainTools(session: Session, options: RunCallsOptions = {}): LangChainTools {
  const toolOf = onceForEach((definition) => createTool(session, definition, options));
  const tools: DynamicStructuredTool[] = session.tools.map(toolOf);
  const changes = session.onChanged(() => tools.splice(0, tools.length, ...session.tools.map(toolOf)));
  return Object.assign(tools, { [Symbol.dispose]: () => changes[Symbol.dispose]() });
}

function createTool(session: Session, { name, description, parameters }: ToolDefinition, options: RunCallsOptions): DynamicStructuredTool {
  return new DynamicStructuredTool({
    name,
    description: description ?? "",
    // A copy, because LangChain writes into it.
    schema: structuredClone(encodeParameters(parameters)),
    async func(input, _manager, config) {
      const { toolCall, signal }: ToolRunnableConfig = config ?? {};
      const call = { id: toolCall?.id ?? crypto.randomUUID(), name, arguments: input };
      const result = await runModelCall(session, call, options, signal);
      if (toolCall?.id !== undefined) return toMessage(result);
      if (!result.ok) throw new Error(result.text);
      return contentOf(result);
    },
  });
}

function toMessage(result: ModelCallResult): ToolMessage {
  const { id, name, ok } = result;
  return new ToolMessage({ tool_call_id: id, name, status: ok ? "success" : "error", content: contentOf(result) });
}

function contentOf({ text, images }: ModelCallResult): string | Exclude<ToolMessage["content"], string> {
  if (images.length === 0) return text;
  return [
    { type: "text", text },
    ...images.map((image) => ({ type: "image_url", image_url: { url: imageUrl({ type: "image", ...image }) } })),
  ];
}

import { type AnthropicImageType, anthropicImageType, encodeParameters, imageNote } from "../models/encode-parts.ts";
import type { Session } from "../session/session.ts";
import { type ModelCallResult, type ResultImage, type RunCallsOptions, runModelCalls } from "./run-model-calls.ts";

export type { RunCallsOptions };

/** A tool for `messages.create({ tools })`. */
export interface AnthropicTool {
  name: string;
  description?: string;
  input_schema: { type: "object"; [keyword: string]: unknown };
}

/** A content block of a message. Only those of type `tool_use` are run. */
export interface AnthropicBlock {
  readonly type: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
}

/** The result of a call, as a content block for the Messages API. */
export interface AnthropicToolResult {
  type: "tool_result";
  tool_use_id: string;
  is_error?: boolean;
  content: ({ type: "text"; text: string } | { type: "image"; source: { type: "base64"; media_type: AnthropicImageType; data: string } })[];
}

/** The tools of a session in the form of Anthropic's Messages API. */
export interface AnthropicTools {
  /** The session's tools at this moment. Read them for each request, so that saved changes take effect. */
  readonly definitions: AnthropicTool[];
  /**
   * Runs the calls among the blocks of a message and returns their results in the same order, for the next message of the user. A
   * failed or denied call has a result with `is_error` that says why.
   * @throws HostError `SESSION_CLOSED`
   */
  run(content: readonly AnthropicBlock[], options?: RunCallsOptions): Promise<AnthropicToolResult[]>;
}

/**
 * Offers a session's tools to your own loop with `@anthropic-ai/sdk`
 * (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use).
 *
 * ```ts
 * const tools = toAnthropicTools(session);
 * const message = await anthropic.messages.create({ model, max_tokens, messages, tools: tools.definitions });
 * messages.push({ role: "assistant", content: message.content });
 * messages.push({ role: "user", content: await tools.run(message.content) });
 * ```
 */
export function toAnthropicTools(session: Session): AnthropicTools {
  return {
    get definitions() {
      return session.tools.map(
        ({ name, description, parameters }): AnthropicTool => ({
          name,
          ...(description && { description }),
          input_schema: { ...encodeParameters(parameters, "anthropic"), type: "object" },
        }),
      );
    },
    async run(content, options) {
      const calls = content.filter(({ type }) => type === "tool_use");
      const read = calls.map(({ id = "", name = "", input }) => ({ id, name, arguments: input ?? {} }));
      return (await runModelCalls(session, read, options)).map(toResult);
    },
  };
}

function toResult({ id, ok, text, images }: ModelCallResult): AnthropicToolResult {
  return {
    type: "tool_result",
    tool_use_id: id,
    ...(!ok && { is_error: true }),
    content: [
      // Empty texts are refused.
      { type: "text", text: text.trim() === "" ? "(no text)" : text },
      ...images.map(encodeImage),
    ],
  };
}

function encodeImage({ mimeType, data }: ResultImage): AnthropicToolResult["content"][number] {
  const type = anthropicImageType(mimeType);
  if (type === undefined) return { type: "text", text: imageNote(mimeType) };
  return { type: "image", source: { type: "base64", media_type: type, data } };
}

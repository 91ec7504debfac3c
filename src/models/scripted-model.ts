import { HostError } from "../base/errors.ts";
import type { ChatModel, ModelReply, ModelRequest } from "./model.ts";

/** One message of a scripted model: a text, or calls of tools, which may have a text before them. */
export type ScriptedMessage =
  | string
  | {
      readonly text?: string;
      readonly calls?: readonly { readonly name: string; readonly args?: Readonly<Record<string, unknown>> }[];
    };

/** A model that says what a test scripts. */
export interface ScriptedModel extends ChatModel {
  /** What it was sent, in order. */
  readonly requests: readonly ModelRequest[];
}

/**
 * A model for `createSession({ chatModel })` that answers each request with the next message, without a network. A request after the last
 * one fails.
 */
export function scriptedModel(...messages: readonly ScriptedMessage[]): ScriptedModel {
  const requests: ModelRequest[] = [];
  let calls = 0;
  return {
    id: "scripted-model",
    address: "script.invalid",
    requests,
    async complete(request, { onDelta }): Promise<ModelReply> {
      const number = requests.push(request);
      const message = messages[number - 1];
      if (message === undefined) {
        throw new HostError(
          "SCRIPT_ENDED",
          `The scripted model was asked ${number} times, but has only ${messages.length} messages. Add one.`,
        );
      }
      const { text = "", calls: made = [] } = typeof message === "string" ? { text: message } : message;
      if (text !== "") onDelta?.({ kind: "text", text, receivedBytes: Buffer.byteLength(text) });
      const toolCalls = made.map(({ name, args = {} }) => ({
        id: `call-${++calls}`,
        name,
        arguments: args,
        argumentsText: JSON.stringify(args),
      }));
      return {
        content: text,
        toolCalls,
        finishReason: toolCalls.length > 0 ? "tool-calls" : "stop",
        model: "scripted-model",
        chunkCount: 1,
        attempts: 1,
        duration: 0,
      };
    },
  };
}

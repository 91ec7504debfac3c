import { encodeParameters, imageUrl } from "../models/encode-parts.ts";
import { parseArguments } from "../models/tool-call-assembly.ts";
import type { Session } from "../session/session.ts";
import { type ModelCallResult, type RunCallsOptions, runModelCalls } from "./run-model-calls.ts";

export type { RunCallsOptions };

/** A tool for `chat.completions.create({ tools })`. */
export interface OpenAIChatTool {
  type: "function";
  function: { name: string; description?: string; parameters: Record<string, unknown> };
}

/** A call in `message.tool_calls` of a chat completion. */
export interface OpenAIChatCall {
  readonly id: string;
  readonly type: string;
  readonly function?: { readonly name: string; readonly arguments: string };
}

/** The result of a call, as a message for chat completions. */
export type OpenAIChatMessage =
  | { role: "tool"; tool_call_id: string; content: string }
  | { role: "user"; content: ({ type: "text"; text: string } | { type: "image_url"; image_url: { url: string } })[] };

/** The tools of a session in the form of OpenAI's chat completions. */
export interface OpenAITools {
  /** The session's tools at this moment. Read them for each request, so that saved changes take effect. */
  readonly definitions: OpenAIChatTool[];
  /**
   * Runs the calls of a message and returns the messages that follow it: one for each call in the same order, and one with the
   * images that tools returned, if any. A failed or denied call has a message that says why.
   * @throws HostError `SESSION_CLOSED`
   */
  run(calls: readonly OpenAIChatCall[] | null | undefined, options?: RunCallsOptions): Promise<OpenAIChatMessage[]>;
}

/**
 * Offers a session's tools to your own loop with `openai` or any client of chat completions
 * (https://platform.openai.com/docs/guides/function-calling).
 *
 * ```ts
 * const tools = toOpenAITools(session);
 * const { choices } = await openai.chat.completions.create({ model, messages, tools: tools.definitions });
 * messages.push(choices[0].message, ...(await tools.run(choices[0].message.tool_calls)));
 * ```
 */
export function toOpenAITools(session: Session): OpenAITools {
  return {
    get definitions() {
      return session.tools.map(
        ({ name, description, parameters }): OpenAIChatTool => ({
          type: "function",
          function: { name, ...(description !== undefined && { description }), parameters: encodeParameters(parameters) },
        }),
      );
    },
    async run(calls, options) {
      const read = (calls ?? []).map(({ id, type, function: called }) => ({
        id,
        name: called?.name ?? `(${type})`,
        ...parseArguments(called?.arguments ?? ""),
      }));
      const results = await runModelCalls(session, read, options);
      const answers = results.map(({ id, text }): OpenAIChatMessage => ({ role: "tool", tool_call_id: id, content: text }));
      return [...answers, ...imagesOf(results)];
    },
  };
}

/** A message of a tool has only text there, so images follow in a message of the user. */
function imagesOf(results: readonly ModelCallResult[]): OpenAIChatMessage[] {
  const parts = results.flatMap(({ id, name, images }) =>
    images.length === 0
      ? []
      : [
          { type: "text" as const, text: `Images that the call ${id} of ${name} returned:` },
          ...images.map((image) => ({ type: "image_url" as const, image_url: { url: imageUrl({ type: "image", ...image }) } })),
        ],
  );
  return parts.length === 0 ? [] : [{ role: "user", content: parts }];
}

/** A tool for `responses.create({ tools })`. */
export interface OpenAIResponsesTool {
  type: "function";
  name: string;
  description?: string;
  parameters: Record<string, unknown>;
  strict: boolean;
}

/** An item of `response.output`. Only function calls are run. */
export interface OpenAIResponsesItem {
  readonly type: string;
  readonly call_id?: string | null;
  readonly name?: string;
  readonly arguments?: unknown;
}

/** The output of a call, as an item for the Responses API. */
export interface OpenAICallOutput {
  type: "function_call_output";
  call_id: string;
  output: string | ({ type: "input_text"; text: string } | { type: "input_image"; image_url: string; detail: "auto" })[];
}

/** The tools of a session in the form of OpenAI's Responses API. */
export interface OpenAIResponsesTools {
  /** The session's tools at this moment. Read them for each request, so that saved changes take effect. */
  readonly definitions: OpenAIResponsesTool[];
  /**
   * Runs the function calls among the items of a response and returns their outputs in the same order, for the next input.
   * @throws HostError `SESSION_CLOSED`
   */
  run(output: readonly OpenAIResponsesItem[], options?: RunCallsOptions): Promise<OpenAICallOutput[]>;
}

/**
 * Offers a session's tools to your own loop with the Responses API
 * (https://platform.openai.com/docs/guides/function-calling?api-mode=responses).
 *
 * ```ts
 * const tools = toOpenAIResponsesTools(session);
 * const response = await openai.responses.create({ model, input, tools: tools.definitions });
 * input.push(...response.output, ...(await tools.run(response.output)));
 * ```
 */
export function toOpenAIResponsesTools(session: Session): OpenAIResponsesTools {
  return {
    get definitions() {
      return session.tools.map(
        ({ name, description, parameters }): OpenAIResponsesTool => ({
          type: "function",
          name,
          ...(description !== undefined && { description }),
          parameters: encodeParameters(parameters),
          // Without it, endpoints assume that schemas follow the rules of strict ones.
          strict: false,
        }),
      );
    },
    async run(output, options) {
      const calls = output.filter(({ type }) => type === "function_call");
      const read = calls.map(({ call_id, name, arguments: text }) => ({
        id: call_id ?? "",
        name: name ?? "",
        ...parseArguments(typeof text === "string" ? text : JSON.stringify(text ?? {})),
      }));
      const results = await runModelCalls(session, read, options);
      return results.map(({ id, text, images }) => ({ type: "function_call_output", call_id: id, output: outputOf(text, images) }));
    },
  };
}

function outputOf(text: string, images: ModelCallResult["images"]): OpenAICallOutput["output"] {
  if (images.length === 0) return text;
  const shown = images.map((image) => ({
    type: "input_image" as const,
    image_url: imageUrl({ type: "image", ...image }),
    detail: "auto" as const,
  }));
  return [{ type: "input_text", text }, ...shown];
}

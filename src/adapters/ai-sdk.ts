import { jsonSchema, type Tool, type ToolSet } from "ai";
import { isRecord } from "../base/json.ts";
import { encodeParameters } from "../models/encode-parts.ts";
import type { Session } from "../session/session.ts";
import type { ToolDefinition } from "../tools/tool.ts";
import { onceForEach, type ResultImage, type RunCallsOptions, runModelCall } from "./run-model-calls.ts";

/** What a tool of the AI SDK returns: the text, or the text with images. */
type Output = string | { readonly text: string; readonly images: readonly ResultImage[] };

/**
 * Offers a session's tools to the AI SDK (https://ai-sdk.dev), for `generateText`, `streamText` and agents. The returned set always has the
 * session's current tools: a saved change takes effect at the next step, also within a running loop. A failed or denied call throws
 * an error with the reason, which the AI SDK reports to the model.
 * @param options are those of each call; the call's own abort signal also cancels it.
 *
 * ```ts
 * const { text } = await generateText({ model, prompt, tools: toAiSdkTools(session), stopWhen: stepCountIs(10) });
 * ```
 */
export function toAiSdkTools(session: Session, options: RunCallsOptions = {}): ToolSet {
  const toolOf = onceForEach((definition) => createTool(session, definition, options));
  let [listed, byName]: [readonly ToolDefinition[] | undefined, ReadonlyMap<string | symbol, ToolDefinition>] = [undefined, new Map()];
  const find = (name: string | symbol): Tool | undefined => {
    const { tools } = session;
    if (tools !== listed) [listed, byName] = [tools, new Map(tools.map((definition) => [definition.name, definition]))];
    const definition = byName.get(name);
    return definition && toolOf(definition);
  };
  return new Proxy<ToolSet>(
    {},
    {
      get: (_target, name) => find(name),
      has: (_target, name) => find(name) !== undefined,
      ownKeys: () => session.tools.map(({ name }) => name),
      getOwnPropertyDescriptor(_target, name) {
        const value = find(name);
        return value && { value, enumerable: true, configurable: true };
      },
      set: () => false,
      defineProperty: () => false,
      deleteProperty: () => false,
    },
  );
}

function createTool(session: Session, { name, title, description, parameters }: ToolDefinition, options: RunCallsOptions): Tool {
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: jsonSchema(encodeParameters(parameters)),
    async execute(input, { toolCallId, abortSignal }): Promise<Output> {
      const call = { id: toolCallId, name, arguments: input };
      const { ok, text, images } = await runModelCall(session, call, options, abortSignal);
      if (!ok) throw new Error(text);
      return images.length === 0 ? text : { text, images };
    },
    toModelOutput: (given: unknown) => toModelOutput(isRecord(given) && "output" in given ? given["output"] : given),
  };
}

/** Version 6 gives an object with the output, and version 5 the output itself. */
function toModelOutput(output: unknown): ReturnType<NonNullable<Tool["toModelOutput"]>> {
  if (!isRecord(output)) return { type: "text", value: String(output) };
  const { text, images } = output as Exclude<Output, string>;
  const media = images.map(({ mimeType, data }) => ({ type: "media" as const, mediaType: mimeType, data }));
  return { type: "content", value: [{ type: "text", text }, ...media] };
}

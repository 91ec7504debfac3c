// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** The answer of a model. */
export interface ModelReply {
  readonly content: string;
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
}

/** The model endpoint answered with a status other than 200. */
export class ModelFault extends Error {
  readonly status: number;
  readonly retryAfter: string | null;

  constructor(status: number, retryAfter: string | null) {
    super(`${words[status] ?? "Request Failed."}`);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const words: Readonly<Record<number, string>> = {
  400: "Sorry, your request failed. Please try again.",
  401: "Oops, you are not authorized. Please sign in.",
  402: "Quota Exceeded.",
};

/** Sends one request to the model and reads its answer from a stream of events. */
export async function askModel(url: string, body: object, signal: AbortSignal): Promise<ModelReply> {
  const response = await fetch(`${url}/chat/completions`, { method: "POST", body: JSON.stringify({ ...body, stream: true }), signal });
  if (!response.ok) throw new ModelFault(response.status, response.headers.get("retry-after"));
  const calls: { id: string; name: string; arguments: string }[] = [];
  let content = "";
  for (const line of (await response.text()).split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const delta = (JSON.parse(line.slice(6)) as Json).choices[0]?.delta ?? {};
    content += delta.content ?? "";
    for (const part of delta.tool_calls ?? []) {
      calls[part.index] ??= { id: part.id, name: part.function.name, arguments: "" };
      calls[part.index]!.arguments += part.function.arguments ?? "";
    }
  }
  return { content, toolCalls: calls };
}

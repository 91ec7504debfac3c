/** The messages of the Copilot language server that this plugin uses. */

/** A tool for `conversation/registerTools`. */
export interface ToolRegistration {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  readonly confirmationMessages?: { readonly title: string; readonly message: string };
}

/** A tool in the server's list. */
export interface RegisteredTool {
  readonly type: string;
  readonly name: string;
  /** `copilot-editor.<name>` for our tools. */
  readonly id: string;
  /** The name that the model uses. */
  readonly nameForModel: string;
  readonly status: string;
  readonly description?: string;
  readonly inputSchema?: Readonly<Record<string, unknown>>;
}

/** `conversation/invokeClientTool`. */
export interface Invocation {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly conversationId: string;
  readonly turnId: string;
  readonly toolCallId: string;
}

/** `conversation/invokeClientToolConfirmation`. */
export interface Confirmation extends Invocation {
  readonly title: string;
  readonly message: string;
}

/** The outcome of a call in the server's format. */
export interface ClientToolResult {
  readonly content: readonly { readonly value: string }[];
  readonly status: "success" | "error" | "cancelled";
}

/** The answers to both requests are always lists of two. */
export type Reply<T> = readonly [T, null];

/** The state of a call, which `$/progress` repeats. */
export interface CallProgress {
  readonly id: string;
  readonly name: string;
  readonly toolType?: string;
  readonly status: string;
  readonly input?: unknown;
  readonly progressMessage?: string;
  readonly result?: readonly { readonly type?: string; readonly value?: unknown }[];
  readonly error?: string;
}

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined: the request is not valid. */
export function readInvocation(params: unknown): Invocation | undefined {
  if (!isFields(params) || typeof params["name"] !== "string") return undefined;
  const { name, input } = params;
  return {
    name,
    input: isFields(input) ? input : {},
    conversationId: textOf(params["conversationId"]),
    turnId: textOf(params["turnId"]),
    toolCallId: textOf(params["toolCallId"]),
  };
}

export function readConfirmation(params: unknown): Confirmation | undefined {
  const read = readInvocation(params);
  if (read === undefined) return undefined;
  const { title, message } = params as Fields;
  return { ...read, title: textOf(title), message: textOf(message) };
}

/** The valid tools of an answer. */
export function readRegistered(answer: unknown): readonly RegisteredTool[] {
  if (!Array.isArray(answer)) return [];
  return answer.filter((tool): tool is RegisteredTool => {
    return isFields(tool) && ["type", "name", "id", "nameForModel"].every((key) => typeof tool[key] === "string");
  });
}

export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}

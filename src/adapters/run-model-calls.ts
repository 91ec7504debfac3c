import type { ProgressListener, ToolCall } from "../session/calls/tool-call.ts";
import type { AskHandlers } from "../session/clients/client-requests.ts";
import type { Session } from "../session/session.ts";
import type { ToolDefinition } from "../tools/tool.ts";

/**
 * Options of running a model's calls.
 *
 * @example
 * ```ts
 * const options: RunCallsOptions = { signal: AbortSignal.timeout(60_000) };
 * ```
 */
export interface RunCallsOptions {
  /** Cancels the calls. Their results say so. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the progress of the calls. */
  readonly onProgress?: ProgressListener | undefined;
  /** Is asked first for permission and for what tools ask. What it leaves with `noResult` goes to the session's clients. */
  readonly answers?: AskHandlers | undefined;
}

/** A tool's image. */
export interface ResultImage {
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
}

/** The result of a call, as the model reads it. */
export interface ModelCallResult {
  readonly id: string;
  readonly name: string;
  /** False: the tool failed, was denied, does not exist or got invalid arguments. The text says why. */
  readonly ok: boolean;
  readonly text: string;
  readonly images: readonly ResultImage[];
}

/**
 * Runs the calls of one message of a model, through hooks, checks and permissions, and returns their results in the same order.
 * @throws HostError `SESSION_CLOSED`
 */
export async function runModelCalls(
  session: Session,
  calls: readonly ToolCall[],
  { signal, onProgress, answers }: RunCallsOptions = {},
): Promise<readonly ModelCallResult[]> {
  const scope = session.createScope({ ...(signal && { signal }), ...(onProgress && { onProgress }), ...(answers && { answers }) });
  const prepared = await session.prepare(calls, scope);
  const outcomes = await Promise.all(prepared.map((call) => session.run(call)));
  return outcomes.map(({ toolCallId, toolName, result, messages }) => ({
    id: toolCallId,
    name: toolName,
    ok: result.resultType === "success",
    // Hooks may want the model to read more than the result.
    text: [result.textResultForLlm, ...messages].join("\n\n"),
    images: (result.binaryResultsForLlm ?? []).filter(({ mimeType }) => mimeType.startsWith("image/")),
  }));
}

/** Runs one call. `signal` cancels it, as the one of the options does. @throws HostError `SESSION_CLOSED` */
export async function runModelCall(
  session: Session,
  call: ToolCall,
  options: RunCallsOptions,
  signal: AbortSignal | undefined,
): Promise<ModelCallResult> {
  const signals = [options.signal, signal].filter((each) => each !== undefined);
  const [result] = await runModelCalls(session, [call], { ...options, signal: AbortSignal.any(signals) });
  return result!;
}

/** Converts a definition once: the same object as long as the tool stays the same. */
export function onceForEach<Converted>(convert: (definition: ToolDefinition) => Converted): (definition: ToolDefinition) => Converted {
  const converted = new WeakMap<ToolDefinition, Converted>();
  return (definition) => {
    const known = converted.get(definition) ?? convert(definition);
    converted.set(definition, known);
    return known;
  };
}

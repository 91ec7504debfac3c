import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { callToolResult, isCallToolResult } from "./call-tool-result.ts";
import { isRecord } from "./schema/walk-schema.ts";
import type { ResultType, ToolResult } from "./tool.ts";
import { resultText, toolResultObject } from "./tool-result-object.ts";

export interface NormalizeOptions {
  /**
   * Who answered: a `handler`, an `execute` module (its text parts and `{ result, message }` have a meaning too), or a
   * client over a `wire`. The empty string is a success from all of them.
   */
  readonly form?: "handler" | "execute" | "wire";
  /** Told what was left out of a result because it could not be used; the same goes to the result's `sessionLog`. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/**
 * Turns whatever a tool answered with into a result: text is a success as it stands, other data its JSON, nothing a
 * failure; a tool result object is checked field by field; an MCP `CallToolResult` is converted and kept beside. What
 * JSON cannot hold is a failure that says so. Never throws, whatever it is given.
 */
export function normalizeResult(raw: unknown, options: NormalizeOptions = {}): ToolResult {
  try {
    return normalize(raw, options);
  } catch (error) {
    // A getter, proxy or toJSON that throws.
    return failureResult(resultText.unreadable, { error: errorMessage(error) });
  }
}

/** What a thrown error comes to. What it says is for the log; the model learns only that there was one. */
export function resultOfThrow(error: unknown): ToolResult {
  return failureResult(resultText.threw, { error: errorMessage(error) });
}

export function successResult(text: string): ToolResult {
  return { resultType: "success", textResultForLlm: text };
}

/** A failure with a text for the model; `error` and `sessionLog` are for the log only. */
export function failureResult(
  text: string,
  details: { readonly resultType?: Exclude<ResultType, "success">; readonly error?: string; readonly sessionLog?: string } = {},
): ToolResult {
  return { resultType: "failure", textResultForLlm: text, ...details };
}

function normalize(raw: unknown, options: NormalizeOptions): ToolResult {
  if (typeof raw === "string") return successResult(raw);
  if (raw === null || raw === undefined) return failureResult(resultText.noResult);
  if (raw instanceof Error) return resultOfThrow(raw);
  if (options.form === "execute") {
    const result = fromExecute(raw);
    if (result !== undefined) return result;
  }
  if (!isRecord(raw)) return fromJson(raw);
  if (typeof raw["textResultForLlm"] === "string") return toolResultObject(raw, options.onDiagnostic);
  return isCallToolResult(raw) ? callToolResult(raw, options.onDiagnostic) : fromJson(raw);
}

/** The two forms of a language server's tool module: a list of text parts, or an outcome with a message. */
function fromExecute(raw: unknown): ToolResult | undefined {
  if (Array.isArray(raw)) {
    const isParts = raw.every((part) => isRecord(part) && part["type"] === "text" && typeof part["value"] === "string");
    return isParts ? successResult(raw.map((part) => part.value).join("\n")) : undefined;
  }
  if (!isRecord(raw)) return undefined;
  const { result, message } = raw;
  const text = typeof message === "string" && message !== "" ? message : undefined;
  if (result === "error") return failureResult(text ?? resultText.failedSilently);
  if (result !== "success") return undefined;
  const hasMore = Object.keys(raw).some((key) => key !== "result" && key !== "message");
  return hasMore ? undefined : successResult(text ?? resultText.succeededSilently);
}

function fromJson(raw: unknown): ToolResult {
  if (typeof raw === "number" && !Number.isFinite(raw)) return failureResult(resultText.notJson, { error: `The tool returned ${raw}.` });
  try {
    const text: string | undefined = JSON.stringify(raw);
    if (text !== undefined) return successResult(text);
    return failureResult(resultText.notJson, { error: `The tool returned a ${typeof raw}.` });
  } catch (error) {
    // A cycle, a BigInt, a toJSON that throws, or nesting beyond the stack.
    return failureResult(resultText.notJson, { error: errorMessage(error) });
  }
}

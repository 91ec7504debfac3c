import { type CallResult, HostError, type ResultType, type ToolResult } from "skillhost";

/** A result that came as JSON, with the short ways that results of `callTool` have. */
export function callResult(result: ToolResult): CallResult {
  return new ReceivedResult(result) as ReceivedResult & ToolResult;
}

class ReceivedResult {
  declare readonly resultType: ResultType;
  declare readonly textResultForLlm: string;
  declare readonly structuredContent?: unknown;

  constructor(result: ToolResult) {
    Object.assign(this, result);
  }

  get ok(): boolean {
    return this.resultType === "success";
  }

  get text(): string {
    return this.textResultForLlm;
  }

  json<Value = unknown>(): Value {
    if (!this.ok) throw new HostError("RESULT_FAILED", `The call ended with ${this.resultType}: ${this.text.slice(0, 200)}`);
    if (this.structuredContent !== undefined) return this.structuredContent as Value;
    try {
      return JSON.parse(this.text) as Value;
    } catch (cause) {
      throw new HostError("RESULT_NOT_JSON", `The result is text and not JSON: ${this.text.slice(0, 200)}`, { cause });
    }
  }
}

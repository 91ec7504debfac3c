import { isRecord } from "../../base/json.ts";
import type { TrafficTap } from "../../base/traffic-tap.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { normalizeResult } from "../../tools/tool-result.ts";

/** Runs a tool and keeps its result or error, or gives the recorded one instead of running it. */
export async function tappedExecution(tap: TrafficTap, tool: string, args: unknown, execute: () => unknown): Promise<ToolResult> {
  const asked = { tool, args };
  if (tap.isReplay) {
    const { result, error } = tap.replay("tools", asked) ?? {};
    if (isRecord(result)) return result as unknown as ToolResult;
    throw new Error(String(error));
  }
  try {
    const result = normalizeResult(await execute());
    tap.record("tools", asked, { result });
    return result;
  } catch (error) {
    tap.record("tools", asked, { error: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

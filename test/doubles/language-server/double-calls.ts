import { type CallEnd, type CallPlace, ended } from "./call-end.ts";
import { runOwnTool } from "./double-tools.ts";
import { runWrapper } from "./double-wrappers.ts";
import type { ListedTool } from "./tool-table.ts";
import { confirmationResult, faultOf, toolResult } from "./wire-schemas.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** The fields that every request for a call carries. */
export interface CallIds {
  readonly conversationId: string;
  readonly turnId: string;
  readonly roundId: number;
  readonly toolCallId: string;
}

/** Makes a call as the server does: asks for confirmation where required, invokes, and validates the answer. */
export async function makeCall(tool: ListedTool, input: Json, ids: CallIds, place: CallPlace): Promise<CallEnd> {
  try {
    if (!(await isConfirmed(tool, input, ids, place))) {
      const why = "The user chose to skip the tool call, they want to proceed without running it";
      return { status: "cancelled", text: `Tool call is cancelled with result: ${why}` };
    }
    place.running();
    if (!place.tools.isRegistered(tool.name)) return { status: "completed", text: runOwnTool(tool.name, input, place.documents) };
    if (tool.type === "shared")
      return await runWrapper(tool.name, input, place, (name, given) => invoke(name, { name, input: given, ...ids }, place));
    return ended(await invoke(tool.name, { name: tool.name, input, ...ids }, place));
  } catch (error) {
    return { status: "error", text: `Tool call failed with error: ${String(error)}` };
  }
}

async function isConfirmed({ id, name, type }: ListedTool, input: Json, ids: CallIds, { settings, request }: CallPlace): Promise<boolean> {
  const isTerminal = name === "run_in_terminal";
  const isApproved = settings.toolConfirmAutoApprove === true || settings.autoApproveYoloMode === true;
  if (settings.editorHandlesAllConfirmation !== true && (!isTerminal || isApproved)) return true;
  const ofServer = name === "read_file" ? "file_read" : "file_write";
  const toolType = isTerminal ? "terminal" : type === "shared" ? ofServer : "safe_tool";
  const c: Json = await request("conversation/invokeClientToolConfirmation", {
    name: type === "shared" && name !== "apply_patch" ? `copilot.${name}` : name,
    title: `Run ${id}`,
    message: `Do you want to allow "${id}" to run?`,
    input: { ...input, toolType, ...(name === "list_dir" && { filePath: input.path }) },
    ...ids,
    ...(isTerminal && { toolMetadata: { terminalCommandData: { subCommands: [], commandNames: [] } } }),
  });
  const [result, error] = c;
  if (error) throw new Error(error.message);
  const fault = faultOf(confirmationResult, result);
  if (fault !== undefined) throw new Error(fault);
  return result.result === "accept";
}

async function invoke(name: string, params: object, { request }: CallPlace): Promise<Json> {
  const failed = `Failed to invoke client tool ${name}:`;
  let result: unknown;
  try {
    // The error message of the real server contains this variable name, which its minifier chose.
    const c: Json = await request("conversation/invokeClientTool", params);
    const [l, u] = c;
    if (u) throw new Error(`${failed} ${u.message}`);
    result = l;
    if (!l) throw "No result returned";
  } catch (error) {
    throw new Error(`${failed} Error: ${failed} ${String(error)}`);
  }
  const fault = faultOf(toolResult, result);
  if (fault !== undefined) throw new Error(`${failed} Error: ${fault}`);
  return result;
}

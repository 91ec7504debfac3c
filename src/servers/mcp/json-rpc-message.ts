import { type JSONRPCMessage, type JSONRPCRequest, parseJSONRPCMessage } from "@modelcontextprotocol/server";
import { isRecord } from "../../base/json.ts";

/**
 * Reads a message of JSON-RPC. Plain requests are recognized without the SDK's schema, which takes longer than a small call.
 * @throws for a value that is not a message.
 */
export function readMessage(value: unknown): JSONRPCMessage {
  return isPlainRequest(value) ? value : parseJSONRPCMessage(value);
}

/** Whether a value is a request without metadata, except a progress token. The SDK decides about all other messages. */
export function isPlainRequest(value: unknown): value is JSONRPCRequest {
  if (!isRecord(value) || value["jsonrpc"] !== "2.0" || typeof value["method"] !== "string" || !isId(value["id"])) return false;
  const { params } = value;
  if (params === undefined) return hasFields(value, 3);
  return hasFields(value, 4) && isRecord(params) && (params["_meta"] === undefined || isPlainMeta(params["_meta"]));
}

function isPlainMeta(meta: unknown): boolean {
  return isRecord(meta) && hasFields(meta, 1) && isId(meta["progressToken"]);
}

function isId(value: unknown): boolean {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function hasFields(value: object, count: number): boolean {
  return Object.keys(value).length === count;
}

// A server of the stateless protocol, written by hand, whose tools need input before they answer. A tool's arguments are the
// input requests of its first answer; `forever` always needs more input, `later` asks three times to be called again.
import { createInterface } from "node:readline";

const complete = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
const capabilities = { tools: {} };

const answers = {
  "server/discover": () => ({ ...complete, supportedVersions: ["2026-07-28"], capabilities, serverInfo: { name: "rounds", version: "1" } }),
  "tools/call": ({ name, arguments: inputRequests, inputResponses, requestState }) => {
    if (name === "forever") return { resultType: "input_required", inputRequests: { again: { method: "roots/list" } } };
    if (name === "later" && requestState !== "3")
      return { resultType: "input_required", requestState: String(Number(requestState ?? 0) + 1) };
    if (name === "ask" && inputResponses === undefined) return { resultType: "input_required", inputRequests };
    return { ...complete, content: [{ type: "text", text: JSON.stringify(inputResponses ?? {}) }] };
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const result = answers[method]?.(params);
  if (id === undefined) return;
  const outcome = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`);
});

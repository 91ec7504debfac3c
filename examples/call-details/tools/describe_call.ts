import { defineTool } from "skillhost";

// The second argument of a handler describes the call.
export default defineTool("describe_call", {
  description: "Returns the ids of the session and the call, the tool's name, and whether the call was cancelled.",
  annotations: { readOnlyHint: true, openWorldHint: false },
  handler: (_args, { sessionId, toolCallId, toolName, signal }) => ({ sessionId, toolCallId, toolName, cancelled: signal.aborted }),
});

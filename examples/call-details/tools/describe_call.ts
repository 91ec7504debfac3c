import { defineTool } from "skillhost";

// The second argument of a handler says on whose behalf it runs.
export default defineTool("describe_call", {
  description: "Gives the ids of this session and call, the tool's name and whether the call was cancelled.",
  annotations: { readOnlyHint: true, openWorldHint: false },
  handler: (_args, { sessionId, toolCallId, toolName, signal }) => ({ sessionId, toolCallId, toolName, cancelled: signal.aborted }),
});

import { defineTool } from "skillhost";

// Without `parameters` a tool takes no arguments.
export default defineTool("get_time", {
  description: "Returns the current date and time in UTC in ISO 8601 format.",
  annotations: { readOnlyHint: true, openWorldHint: false },
  handler: () => new Date().toISOString(),
});

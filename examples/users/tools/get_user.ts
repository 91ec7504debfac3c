import { defineTool } from "skillhost";
import { z } from "zod";
import users from "./_directory.json" with { type: "json" };

export default defineTool("get_user", {
  description: "Returns the name, e-mail address and role of a user by id.",
  parameters: z.object({ id: z.number().int().describe("Id of the user, as returned by query_users.") }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  // An object is a success, and the model gets its JSON.
  handler: ({ id }) =>
    users.find((user) => user.id === id) ?? {
      textResultForLlm: `User ${id} was not found. Use query_users to find the id.`,
      resultType: "failure",
    },
});

import { defineTool } from "skillhost";
import { z } from "zod";
import users from "./_directory.json" with { type: "json" };

export default defineTool("get_user", {
  description: "Gives the name, e-mail address and role of a user whose id is known.",
  parameters: z.object({ id: z.number().int().describe("The user's id, as query_users gives it.") }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  // An object is a success; the model reads its JSON.
  handler: ({ id }) =>
    users.find((user) => user.id === id) ?? {
      textResultForLlm: `There is no user ${id}. Find the id with query_users.`,
      resultType: "failure",
    },
});

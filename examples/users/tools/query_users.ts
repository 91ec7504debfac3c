import { defineTool } from "skillhost";
import { z } from "zod";
import users from "./_directory.json" with { type: "json" };

// A result object: the model gets `textResultForLlm`, the log and the events get the rest.
export default defineTool("query_users", {
  description: "Finds users whose name or e-mail address contains a text. Returns id, name, e-mail address and role, one user per line.",
  parameters: z.object({
    search: z.string().trim().min(1).describe('Part of the name or e-mail address, for example "ada". Case-insensitive.'),
    role: z.enum(["admin", "developer", "designer"]).optional().describe("Return only users with this role."),
    limit: z.number().int().min(1).max(50).default(10).describe("Maximum number of users to return."),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  handler({ search, role, limit }) {
    const started = performance.now();
    const wanted = search.toLowerCase();
    const found = users.filter(
      (user) => `${user.name} ${user.email}`.toLowerCase().includes(wanted) && (role === undefined || user.role === role),
    );
    const lines = found.slice(0, limit).map(({ id, name, email, role }) => `${id}: ${name} <${email}>, ${role}`);
    const more = found.length > limit ? [`… and ${found.length - limit} more. Use a longer search text.`] : [];
    return {
      textResultForLlm: found.length === 0 ? `No user matches "${search}".` : [...lines, ...more].join("\n"),
      resultType: "success",
      sessionLog: `query_users: ${found.length} of ${users.length} users match`,
      toolTelemetry: { matches: found.length, searched: users.length, milliseconds: performance.now() - started },
    };
  },
});

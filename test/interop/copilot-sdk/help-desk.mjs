// A typical application of the Copilot SDK: seven tools of several kinds over its own data, and a question.
import { CopilotClient, defineTool } from "@github/copilot-sdk";
import { z } from "zod";

const users = [
  { id: 123, name: "Ada Lovelace", email: "ada@example.com" },
  { id: 124, name: "John Doe", email: "john@example.com" },
];

const queryUsers = defineTool("query_users", {
  description: "Searches the users by their name or email.",
  parameters: z.object({
    searchTerm: z.string().describe("Name or email to search for"),
    limit: z.number().optional().default(10),
  }),
  handler: async ({ searchTerm, limit = 10 }) => {
    const found = users.filter(({ name, email }) => `${name} ${email}`.toLowerCase().includes(searchTerm.toLowerCase())).slice(0, limit);
    return {
      textResultForLlm: `Found ${found.length} users matching "${searchTerm}": ${found.map(({ name, email }) => `${name} (${email})`).join(", ")}`,
      resultType: "success",
      toolTelemetry: { resultCount: found.length, searchTerm },
      sessionLog: `rows: ${found.length}`,
    };
  },
});

const getUser = defineTool("get_user", {
  description: "Returns the details of a user.",
  parameters: z.object({ userId: z.number() }),
  handler: async ({ userId }) => {
    const user = users.find(({ id }) => id === userId);
    if (user === undefined) {
      return {
        textResultForLlm: `There is no user ${userId}. Find the id with query_users.`,
        resultType: "failure",
        error: `no row ${userId}: ECONNREFUSED 10.0.0.7`,
      };
    }
    return `User: ${user.name}, Email: ${user.email}`;
  },
});

const sendNotification = defineTool("send_notification", {
  description: "Sends a notification to a user.",
  parameters: z.object({ userId: z.number(), message: z.string() }),
  handler: async ({ userId, message }) => {
    console.log(`sent to ${userId}: ${message}`);
    return "Notification sent successfully";
  },
});

const deleteUser = defineTool("delete_user", {
  description: "Deletes a user.",
  parameters: z.object({ userId: z.number() }),
  handler: () => {
    throw new Error("connect ECONNREFUSED 10.0.0.7:5432");
  },
});

const getWeather = defineTool("get_weather", {
  description: "Returns the current weather of a city.",
  parameters: z.object({ city: z.string().describe("The city's name"), units: z.enum(["celsius", "fahrenheit"]).optional() }),
  handler: ({ city }) => ({ city, temperature: 4, condition: "light rain" }),
});

const drawChart = defineTool("draw_chart", {
  description: "Draws a chart of values.",
  parameters: { type: "object", properties: { values: { type: "array", items: { type: "number" } } }, required: ["values"] },
  handler: ({ values }) => ({
    textResultForLlm: "Chart generated successfully",
    resultType: "success",
    binaryResultsForLlm: [
      { data: Buffer.from(`chart of ${values}`).toString("base64"), mimeType: "image/png", type: "image", description: "A chart" },
    ],
  }),
});

const getTime = defineTool("get_time", { description: "Returns the time.", skipPermission: true, handler: () => new Date().toISOString() });

const client = new CopilotClient();
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  tools: [queryUsers, getUser, sendNotification, deleteUser, getWeather, drawChart, getTime],
  onPermissionRequest: ({ toolName }) => {
    console.log(`asked for ${toolName}`);
    return { kind: "approve-once" };
  },
});
const names = new Map();
session.on("tool.execution_start", ({ data }) => names.set(data.toolCallId, data.toolName));
session.on("tool.execution_complete", ({ data }) => console.log(`finished ${names.get(data.toolCallId)}: ${data.success}`));
const answer = await session.sendAndWait("Get details for Ada and send her a welcome message.");
console.log(answer?.data.content);
await client.stop();

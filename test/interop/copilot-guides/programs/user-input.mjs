// Questions to the user: ask_user, and forms that the program itself opens.
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const config = { model: "claude-sonnet-4.5", onPermissionRequest: approveAll };
const asking = await client.createSession({
  ...config,
  onUserInputRequest: async (request, invocation) => {
    console.log("asked:", request.question, request.choices?.join("/"), request.allowFreeform, invocation.sessionId === asking.sessionId);
    return request.choices ? { answer: request.choices[1], wasFreeform: false } : { answer: "Something else", wasFreeform: true };
  },
});
console.log("elicitation:", asking.capabilities.ui?.elicitation);
console.log("answer:", (await asking.sendAndWait({ prompt: "Ask me." }))?.data.content);
await asking.ui.confirm("Deploy?").catch((error) => console.log("error:", error.message));
await asking.disconnect();

const forms = await client.createSession({
  ...config,
  askUserVariant: "elicitation",
  onElicitationRequest: async (context) => {
    console.log("form:", context.message, context.mode, context.elicitationSource, JSON.stringify(context.requestedSchema));
    const [name] = Object.keys(context.requestedSchema?.properties ?? {});
    const field = context.requestedSchema?.properties[name];
    if (context.message === "Stop here?") return { action: "decline" };
    return {
      action: "accept",
      content: { [name]: field.type === "boolean" ? true : (field.enum?.[0] ?? field.oneOf?.[0].const ?? "text") },
    };
  },
});
console.log("elicitation:", forms.capabilities.ui?.elicitation);
console.log("answer:", (await forms.sendAndWait({ prompt: "Ask me with a form." }))?.data.content);
console.log("confirm:", await forms.ui.confirm("Deploy to production?"));
console.log("select:", await forms.ui.select("Pick environment", ["production", "staging", "dev"]));
console.log("input:", await forms.ui.input("Project name:", { title: "Name", minLength: 1, maxLength: 50 }));
const result = await forms.ui.elicitation({
  message: "Configure deployment",
  requestedSchema: { type: "object", properties: { region: { type: "string", enum: ["us-east", "eu-west"] } }, required: ["region"] },
});
console.log("elicited:", JSON.stringify(result));
console.log("declined:", await forms.ui.confirm("Stop here?"));
await forms.disconnect();
await client.stop();

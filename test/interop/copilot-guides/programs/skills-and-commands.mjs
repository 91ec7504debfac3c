// Skills of a folder, one of them disabled, and slash commands of the program.
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const client = new CopilotClient({ gitHubToken: "token-of-the-guide", logLevel: "error" });
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: approveAll,
  skillDirectories: ["skills"],
  disabledSkills: ["disabled-skill"],
  commands: [
    {
      name: "deploy",
      description: "Deploy the app to production",
      handler: async ({ commandName, args }) => console.log("command:", commandName, args),
    },
    {
      name: "break",
      handler: async () => {
        throw new Error("It broke.");
      },
    },
  ],
});
const { skills } = await session.rpc.skills.list();
for (const { name, enabled, source } of skills.filter(({ name }) => name.endsWith("-skill"))) console.log("skill:", name, enabled, source);
console.log("answer:", (await session.sendAndWait({ prompt: "Use the greeting skill." }))?.data.content);
await session.rpc.skills.enable({ name: "disabled-skill" });
console.log("answer:", (await session.sendAndWait({ prompt: "And the other one?" }))?.data.content);
const { commands } = await session.rpc.commands.list({ includeClientCommands: true });
console.log(
  "commands:",
  commands
    .filter(({ name }) => name === "deploy" || name === "break")
    .map(({ name, description }) => `${name} ${description}`)
    .join(", "),
);
console.log("deploy:", JSON.stringify(await session.rpc.commands.invoke({ name: "deploy", input: "staging" })));
await session.rpc.commands.invoke({ name: "break" }).catch((error) => console.log("error:", error.message));
await session.disconnect();
await client.stop();

// Custom providers (BYOK) of each type and wire format, named providers, and a change of the model.
import { approveAll, CopilotClient } from "@github/copilot-sdk";

const url = process.env.MODEL_URL;
const client = new CopilotClient({
  logLevel: "error",
  useLoggedInUser: false,
  onListModels: () => [
    {
      id: "my-model",
      name: "My model",
      capabilities: { supports: { vision: false, reasoningEffort: false }, limits: { max_context_window_tokens: 100_000 } },
    },
  ],
});
await client.start();
console.log("models:", (await client.listModels()).map(({ id }) => id).join(", "));
const providers = [
  { baseUrl: `${url}/v1` },
  { type: "openai", baseUrl: `${url}/v1`, apiKey: "key-of-openai", headers: { "x-team": "guides" } },
  { type: "openai", baseUrl: `${url}/v1`, wireApi: "responses", bearerToken: "token-of-openai" },
  { type: "azure", baseUrl: url, apiKey: "key-of-azure", azure: { apiVersion: "2024-10-21" } },
  { type: "anthropic", baseUrl: url, apiKey: "key-of-anthropic" },
];
for (const provider of providers) {
  const session = await client.createSession({ model: "my-model", provider, onPermissionRequest: approveAll, availableTools: [] });
  console.log(provider.type, (await session.sendAndWait({ prompt: "Hello!" }))?.data.content);
  await session.disconnect();
}
const named = await client.createSession({
  model: "mine/small",
  providers: [{ name: "mine", type: "openai", baseUrl: `${url}/v1`, apiKey: "key-of-mine" }],
  models: [
    { id: "small", provider: "mine", name: "Small", wireModel: "small-1", maxContextWindowTokens: 50_000 },
    { id: "large", provider: "mine", name: "Large" },
  ],
  onPermissionRequest: approveAll,
  availableTools: [],
});
console.log("named:", (await named.sendAndWait({ prompt: "Hello!" }))?.data.content);
await named.setModel("mine/large");
console.log("changed:", (await named.sendAndWait({ prompt: "Hello again!" }))?.data.content);
await named.disconnect();
await client
  .createSession({ provider: providers[0], onPermissionRequest: approveAll })
  .catch((error) => console.log("error:", error.message));
await client.stop();

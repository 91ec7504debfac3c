import type { RawClient } from "./raw-client.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever the server says
type Json = any;

/** A situation and its expected outcome, as data that is the same for the double and the real server. */
export interface Scenario<Bench> {
  readonly name: string;
  run(bench: Bench): Promise<unknown>;
  readonly expected: unknown;
}

const ownNames = ["list_dir", "read_file", "file_search", "grep_search", "validate_cves"];
const schema = { type: "object", properties: { city: { type: "string", description: "Where." } }, required: ["city"] };
const weather = { name: "weather", description: "Returns the weather.", inputSchema: schema };

/** How the server answers the registration of tools. */
export const registrationScenarios: readonly Scenario<RawClient>[] = [
  registers("a valid tool", [weather], { weather: "client" }),
  registers("an empty list of required arguments", [{ ...weather, inputSchema: { ...schema, required: [] } }], { weather: "client" }),
  registers("no schema", [{ name: "weather", description: "d" }], { weather: "client" }),
  registers("null for a schema", [{ ...weather, inputSchema: null }], { weather: "client" }),
  registers(
    "enumerations, lists and what is nested",
    [withProperty({ type: "array", description: "d", items: { anyOf: [{ type: "string" }, { enum: [1] }] }, default: [] })],
    { weather: "client" },
  ),
  registers("keywords beside", [{ ...weather, inputSchema: { ...schema, additionalProperties: false, $defs: {} } }], { weather: "client" }),
  registers("unknown keys", [{ ...weather, annotations: { readOnlyHint: true } }], { weather: "client" }),
  registers("both texts of a confirmation", [{ ...weather, confirmationMessages: { title: "t", message: "m" } }], { weather: "client" }),
  registers("two tools with the same name", [weather, { ...weather, description: "Another." }], { weather: "client" }),
  refuses("a schema without required", [{ ...weather, inputSchema: { type: "object", properties: {} } }], "/tools/0/inputSchema/required", [
    "Expected array",
  ]),
  refuses(
    "a schema without properties",
    [{ ...weather, inputSchema: { type: "object", required: [] } }],
    "/tools/0/inputSchema/properties",
    ["Expected object"],
  ),
  refuses("a property without a description", [withProperty({ type: "string" })], "/tools/0/inputSchema/properties/a/description", [
    "Expected string",
  ]),
  refuses("a property without a type", [withProperty({ description: "d" })], "/tools/0/inputSchema/properties/a/type", ["Expected string"]),
  {
    name: "the server refuses a property of two types",
    run: (client) => registration(client, [withProperty({ type: ["string", "null"], description: "d" })]),
    expected: failedValidation(["/tools/0/inputSchema/properties/a/type: Expected string"]),
  },
  refuses("a tool without a description", [{ name: "weather" }], "/tools/0/description", ["Expected string"]),
  refuses("half a confirmation", [{ ...weather, confirmationMessages: { title: "t" } }], "/tools/0/confirmationMessages/message", [
    "Expected string",
  ]),
  refuses("a good tool beside a bad one", [weather, { name: "bad" }], "/tools/1/description", ["Expected string"]),
  {
    name: "the server refuses a request without tools",
    run: (client) => attempt(client, "conversation/registerTools", {}),
    expected: failedValidation(["/tools: Expected required property", "/tools: Expected array"]),
  },
  {
    name: "the server derives names that a model can use",
    run: async (client) => {
      const long = "n".repeat(100);
      await client.request("conversation/registerTools", { tools: ["my.tool", "we ird/näme", long].map((name) => ({ ...weather, name })) });
      const listed = (await list(client)).filter(({ name }: Json) => !ownNames.includes(name));
      await client.request("conversation/unregisterTools", { toolIds: ["my.tool", "we ird/näme", long].map((n) => `copilot-editor.${n}`) });
      return Object.fromEntries(listed.map(({ name, nameForModel }: Json) => [name.slice(0, 11), nameForModel]));
    },
    expected: { "my.tool": "my_tool", "we ird/näme": "we_ird_n_me", nnnnnnnnnnn: "n".repeat(64) },
  },
  {
    name: "a registered tool replaces one of the server's own tools until it is unregistered",
    async run(client) {
      const typeOf = async (): Promise<unknown> => (await list(client)).find(({ name }: { name: string }) => name === "read_file")?.type;
      const types = [await typeOf()];
      await client.request("conversation/registerTools", { tools: [{ ...weather, name: "read_file" }] });
      types.push(await typeOf());
      await client.request("conversation/unregisterTools", { toolIds: ["read_file"] });
      types.push(await typeOf());
      await client.request("conversation/unregisterTools", { toolIds: ["copilot-editor.read_file"] });
      return [...types, await typeOf()];
    },
    expected: ["shared", "client", "client", "shared"],
  },
  {
    name: "the server wraps the tools of an editor that write",
    async run(client) {
      const names = ["create_file", "insert_edit_into_file", "replace_string_in_file", "apply_patch", "run_in_terminal"];
      await client.request("conversation/registerTools", { tools: names.map((name) => ({ ...weather, name })) });
      const listed = await list(client);
      await client.request("conversation/unregisterTools", { toolIds: names.map((name) => `copilot-editor.${name}`) });
      return Object.fromEntries(names.map((name) => [name, listed.find((tool: { name: string }) => tool.name === name)?.type]));
    },
    expected: {
      create_file: "shared",
      insert_edit_into_file: "shared",
      replace_string_in_file: "shared",
      apply_patch: "shared",
      run_in_terminal: "client",
    },
  },
  {
    name: "the server does not list disabled tools, and ignores unknown names",
    async run(client) {
      await client.request("conversation/registerTools", { tools: [weather] });
      const status = (name: string, to: string): Promise<{ name: string }[]> =>
        client.request("conversation/updateToolsStatus", { chatModeKind: "Agent", tools: [{ name, status: to }] });
      const off = await status("weather", "disabled");
      await status("unknown", "disabled");
      const on = await status("weather", "enabled");
      await client.request("conversation/unregisterTools", { toolIds: ["copilot-editor.weather"] });
      return [off, on].map((tools) => tools.some(({ name }) => name === "weather"));
    },
    expected: [false, true],
  },
];

function list(client: RawClient): Promise<Json> {
  return client.request("conversation/registerTools", { tools: [] });
}

function withProperty(property: object): object {
  return { ...weather, inputSchema: { type: "object", properties: { a: property }, required: [] } };
}

async function attempt(client: RawClient, method: string, params: object): Promise<unknown> {
  try {
    return await client.request(method, params);
  } catch (error) {
    const { code, message } = error as { code: number; message: string };
    return { code, message };
  }
}

/** Registers tools and unregisters them. Returns the name and type of each registered tool. */
async function registration(client: RawClient, tools: readonly object[]): Promise<unknown> {
  const answer = await attempt(client, "conversation/registerTools", { tools });
  if (!Array.isArray(answer)) {
    const left = (await list(client)).filter(({ name }: Json) => !ownNames.includes(name));
    return left.length === 0 ? answer : { answer, left };
  }
  const registered = answer.filter(({ name }: Json) => !ownNames.includes(name)).map(({ name, type }: Json) => [name, type]);
  await client.request("conversation/unregisterTools", { toolIds: registered.map(([name]) => `copilot-editor.${name}`) });
  return Object.fromEntries(registered);
}

function registers(what: string, tools: readonly object[], expected: object): Scenario<RawClient> {
  return { name: `the server registers ${what}`, run: (client) => registration(client, tools), expected };
}

function refuses(what: string, tools: readonly object[], pointer: string, more: readonly string[]): Scenario<RawClient> {
  const lines = ["Expected required property", ...more].map((line) => `${pointer}: ${line}`);
  return { name: `the server refuses ${what}`, run: (client) => registration(client, tools), expected: failedValidation(lines) };
}

function failedValidation(lines: readonly string[]): object {
  const listed = lines.map((line) => `- ${line}`).join("\n");
  return { code: -32602, message: `Schema validation failed with the following errors:\n${listed}` };
}

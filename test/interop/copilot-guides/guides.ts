import type { ScriptedAnswer, ScriptedReply } from "../../doubles/scripted-model.ts";
import { jsonAnswer } from "../../doubles/scripted-model.ts";
import { calling } from "../copilot-sdk/sdk-kit.ts";

/** A program of `programs/`, written for the official runtime by a guide of the SDK's documentation. */
export interface Guide {
  readonly name: string;
  /** The model's answers, in the order of its requests. */
  readonly replies: readonly (string | ScriptedReply | { readonly refused: ScriptedAnswer })[];
  /** The files of the working directory. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
}

const refused = (status: number, message: string): { readonly refused: ScriptedAnswer } => ({
  refused: jsonAnswer({ error: { message, type: "invalid_request_error", code: "invalid" } }, { status }),
});

/** A picture of one dot. */
const dot = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==", "base64");

/** An MCP server of two tools, in plain JavaScript. */
const mcpServer = `import { createInterface } from "node:readline";
const tools = [
  { name: "look_up", description: "Looks up a record", inputSchema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] } },
  { name: "fail", description: "Fails", inputSchema: { type: "object" } },
  { name: "hidden", description: "Is filtered out", inputSchema: { type: "object" } },
];
const results = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "records", version: "1.0.0" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name, arguments: { id } = {} }) =>
    name === "look_up"
      ? { content: [{ type: "text", text: process.env.PREFIX + " " + id }], structuredContent: { id } }
      : { content: [{ type: "text", text: "The record is locked." }], isError: true },
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = results[method];
  const reply = answer ? { result: answer(params) } : { error: { code: -32601, message: "Method not found" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...reply }) + "\\n");
});
`;

const skill = (name: string, description: string): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\n\nFollow the steps of ${name}.\n`;

export const guides: readonly Guide[] = [
  { name: "getting-started", replies: ["4", "6"] },
  {
    name: "custom-tools",
    replies: [
      calling("lookup_issue", { id: "7" }, "call-1"),
      "The printer is on fire.",
      calling("view", { path: "a.txt" }, "call-2"),
      calling("safe_lookup", { id: "9" }, "call-3"),
      "Viewed.",
      calling("close_issue", { id: "7" }, "call-4"),
      "It cannot be closed.",
      calling("explode", {}, "call-5"),
      "It exploded.",
    ],
  },
  { name: "streaming", replies: [{ reasoning: "They want a story.", content: "Once upon a time there was a parser." }] },
  { name: "telemetry", replies: [calling("echo", { value: "marker" }, "call-1"), "Done."] },
  { name: "persistence", replies: ["I will.", "Hello.", "It was 42.", "84."] },
  { name: "system-message", replies: ["An assistant.", "An assistant again.", "An analyst.", "A helper."] },
  {
    name: "mcp-servers",
    replies: [calling("records-look_up", { id: "7" }, "call-1"), "It is record 7.", calling("records-fail", {}, "call-2"), "It failed."],
    files: { "server.mjs": mcpServer },
  },
  {
    name: "custom-agents",
    replies: [
      calling(
        "task",
        { agent_type: "counter", name: "count", description: "Count the files", prompt: "Count the files.", mode: "sync" },
        "call-1",
      ),
      calling("count_files", {}, "call-2"),
      "There are three.",
      "The counter says three.",
      "Edited.",
    ],
  },
  {
    name: "hooks",
    replies: [
      calling("look_up", { id: "7" }, "call-1"),
      "Here it is.",
      "Validated.",
      calling("fail", {}, "call-2"),
      calling("view", { path: "a.txt" }, "call-3"),
      "It failed.",
    ],
  },
  {
    name: "permissions",
    replies: [
      calling("bash", { command: "echo hello > greeting.txt", description: "Greet" }, "call-1"),
      "Done.",
      calling("create", { path: "<folder>/project/one.txt", file_text: "one" }, "call-2"),
      "Written.",
      calling("create", { path: "<folder>/project/two.txt", file_text: "two" }, "call-3"),
      "Written, too.",
      calling("look_up", {}, "call-4"),
      "Found.",
      calling("look_up", {}, "call-5"),
      "Found again.",
      calling("bash", { command: "echo more > greeting.txt", description: "Greet" }, "call-6"),
      "I may not.",
      calling("bash", { command: "rm -rf docs", description: "Delete" }, "call-7"),
      "I must not.",
      calling("bash", { command: "rm -rf docs", description: "Delete" }, "call-8"),
    ],
  },
  {
    name: "user-input",
    replies: [
      calling("ask_user", { question: "Which one?", choices: ["red", "blue"], allow_freeform: true }, "call-1"),
      calling("ask_user", { question: "Why?" }, "call-2"),
      "Blue, for a reason.",
      calling(
        "ask_user",
        {
          message: "Which region?",
          requestedSchema: {
            type: "object",
            properties: { region: { type: "string", enum: ["us-east", "eu-west"] } },
            required: ["region"],
          },
        },
        "call-3",
      ),
      "us-east.",
    ],
  },
  {
    name: "attachments",
    replies: [
      "A constant.",
      "Documents.",
      "It answers.",
      "A dot.",
      "The same dot.",
      calling("view", { path: "<folder>/project/dot.png" }, "call-1"),
      "Still a dot.",
      "Understood.",
    ],
    files: { "file.js": "const answer = 42;\nexport { answer };\n", "docs/a.md": "# A\n", "docs/b.md": "# B\n", "dot.png": dot },
  },
  { name: "providers", replies: ["Plain.", "With a key.", "By responses.", "From Azure.", "From Anthropic.", "Small.", "Large."] },
  {
    name: "infinite-sessions",
    replies: [
      "I will remember 42.",
      "And 43.",
      "<overview>\nTwo numbers.\n</overview>\n<history>\n1. 42, 43\n</history>\n<checkpoint_title>Numbers</checkpoint_title>",
      "42 and 43.",
      "Hello.",
    ],
  },
  {
    name: "skills-and-commands",
    replies: [
      calling("skill", { skill: "greeting-skill" }, "call-1"),
      "Hello!",
      calling("skill", { skill: "disabled-skill" }, "call-2"),
      "Hello again!",
    ],
    files: {
      "skills/greeting-skill/SKILL.md": skill("greeting-skill", "Greets people. Use it for greetings."),
      "skills/disabled-skill/SKILL.md": skill("disabled-skill", "Says goodbye."),
    },
  },
  { name: "steering", replies: [calling("work", {}, "call-1"), "The first page.", "The summary.", calling("work", {}, "call-2"), "Yes."] },
  { name: "errors", replies: [refused(400, "The request is not valid."), "Hello.", "Hello, too."] },
];

import { approveAll, defineTool, type ToolLike } from "skillhost";
import { z } from "zod";
import { Bridge } from "./bridge.ts";
import type { Scenario } from "./protocol-scenarios.ts";

/** How the bridge offers the tools of a session to a language server: the double or the real one. */
export type BridgeScenario = Scenario<string>;

const image = { type: "image", data: Buffer.from("12345678").toString("base64"), mimeType: "image/png" };

/** Results of handlers, and the text that the model gets for each. */
const answers: readonly (readonly [name: string, handler: () => unknown, model: string])[] = [
  ["text", () => "plain", "plain"],
  ["number", () => 7, "7"],
  ["nothing", () => null, "Tool call failed with error: Tool returned no result"],
  ["object", () => ({ a: [1, { b: 2 }] }), '{"a":[1,{"b":2}]}'],
  ["result_object", () => ({ textResultForLlm: "yes", resultType: "success", sessionLog: "for the log only" }), "yes"],
  [
    "failure",
    () => ({ textResultForLlm: "No fact stored for X.", resultType: "failure", error: "for the log only", toolTelemetry: {} }),
    "Tool call failed with error: No fact stored for X.",
  ],
  ["mcp", () => ({ content: [{ type: "text", text: "seen" }, image] }), "seen\n[image/png, about 9 bytes, which cannot be shown here.]"],
  ["mcp_error", () => ({ content: [{ type: "text", text: "broken" }], isError: true }), "Tool call failed with error: broken"],
  [
    "thrown",
    () => {
      throw new Error("secret at /home/someone");
    },
    "Tool call failed with error: Invoking this tool produced an error. Detailed information is not available.",
  ],
  [
    "rejected",
    () => Promise.reject(new Error("secret")),
    "Tool call failed with error: Invoking this tool produced an error. Detailed information is not available.",
  ],
  ["cut", () => "x".repeat(10_000), `${"x".repeat(3936)}\n[6064 more characters were left out. Ask for a smaller part.]\n`],
];

const skipped = "Tool call is cancelled with result: The user chose to skip the tool call, they want to proceed without running it";

const nothing = { type: "object", properties: {} } as const;

export const bridgeScenarios: readonly BridgeScenario[] = [
  {
    name: "the model gets the results of handlers as text",
    run: async (server) => {
      const tools = answers.map(([name, handler]) => defineTool(name, { description: name, parameters: nothing, handler }));
      await using bridge = await Bridge.start(server, { tools });
      const turn = await bridge.turn(answers.map(([name]) => [name]));
      const statuses = Object.fromEntries(turn.calls.map(({ name, status }) => [name, status]));
      return { outcome: turn.outcome, results: bridge.results, statuses };
    },
    expected: {
      outcome: "completed",
      results: answers.map(([, , model]) => model),
      statuses: Object.fromEntries(answers.map(([name, , model]) => [name, model.startsWith("Tool call failed") ? "error" : "completed"])),
    },
  },
  {
    name: "the bridge validates arguments itself, and the model reads what is wrong with them",
    run: async (server) => {
      let calls = 0;
      const tool = defineTool("add", {
        description: "Adds.",
        parameters: z.object({ amount: z.number(), note: z.string().default("none") }),
        handler: ({ amount, note }) => `${++calls} ${amount} ${note}`,
      });
      await using bridge = await Bridge.start(server, { tools: [tool] });
      await bridge.turn([["add", { amount: "much" }], ["add"], ["add", { amount: 2 }]]);
      return [...bridge.results.map((text) => /amount|1 2 none/.exec(text)?.[0]), calls];
    },
    expected: ["amount", "amount", "1 2 none", 1],
  },
  {
    name: "the bridge adapts a copy of each schema to the server, and reports what it changed",
    run: async (server) => {
      const parameters = z.object({
        city: z.string(),
        days: z.number().nullable(),
        unit: z.union([z.literal("C"), z.literal("F")]).optional(),
        more: z.object({ deep: z.union([z.string(), z.number()]) }).describe("More."),
      });
      const tool = defineTool("forecast", { description: "d", parameters, handler: () => "ok" });
      await using bridge = await Bridge.start(server, { tools: [tool] });
      const before = JSON.stringify(bridge.session.tools);
      const { inputSchema } = bridge.agent.tools.find(({ name }) => name === "forecast") ?? {};
      const { properties, required } = (inputSchema ?? {}) as {
        properties: Record<string, { type: string; description: string }>;
        required: unknown;
      };
      return {
        required,
        types: Object.fromEntries(Object.entries(properties).map(([name, { type, description }]) => [name, `${type}: ${description}`])),
        deep: JSON.stringify(properties["more"]).includes('["string","number"]'),
        isUntouched: JSON.stringify(bridge.session.tools) === before && !before.includes('"description":"days"'),
        said: bridge.agent.diagnostics.map(({ code, message }) => `${code} ${/\/\S+/.exec(message)?.[0]}`),
      };
    },
    expected: {
      required: ["city", "days", "more"],
      types: { city: "string: city", days: "number: days", unit: "string: unit", more: "object: More." },
      deep: true,
      isUntouched: true,
      said: [
        "LANGUAGE_SERVER_SCHEMA_CHANGED /inputSchema/properties/city/description",
        "LANGUAGE_SERVER_SCHEMA_CHANGED /inputSchema/properties/days/type",
        "LANGUAGE_SERVER_SCHEMA_CHANGED /inputSchema/properties/days/description",
        "LANGUAGE_SERVER_SCHEMA_CHANGED /inputSchema/properties/unit/type",
        "LANGUAGE_SERVER_SCHEMA_CHANGED /inputSchema/properties/unit/description",
      ],
    },
  },
  {
    name: "the bridge withholds a tool that the server would refuse, and no other",
    run: async (server) => {
      const tools = [
        defineTool("good", { description: "Good.", handler: () => "ok" }),
        defineTool("bad", {
          description: "Bad.",
          parameters: { type: "object", properties: { a: { type: ["string", "null"] } }, required: [] },
          handler: () => "ok",
        }),
        defineTool("half", { description: "Half.", metadata: { confirmationMessages: { title: "Sure?" } }, handler: () => "ok" }),
      ];
      await using bridge = await Bridge.start(server, { tools, options: { schemas: "strict" } });
      return {
        listed: ours(bridge),
        said: bridge.agent.diagnostics.map(({ source, message }) => `${source}: ${/\/\S+/.exec(message)?.[0]}`),
      };
    },
    expected: {
      listed: ["good"],
      said: ["bad: /inputSchema/properties/a/type", "bad: /inputSchema/properties/a/description", "half: /confirmationMessages/message"],
    },
  },
  {
    name: "a tool replaces one of the server's tools only if it declares so",
    run: async (server) => {
      const tool = (overridesBuiltInTool: boolean): ToolLike =>
        defineTool("read_file", { description: "Reads.", overridesBuiltInTool, handler: () => "mine" });
      await using bridge = await Bridge.start(server, { tools: [tool(false)] });
      const typeOf = (): unknown => bridge.agent.tools.find(({ name }) => name === "read_file")?.type;
      const seen = [typeOf(), bridge.agent.diagnostics[0]?.code];
      await bridge.session.setTools([tool(true)]);
      await bridge.turn([["read_file"]]);
      seen.push(typeOf(), bridge.agent.diagnostics[0]?.code, bridge.results[0]);
      await bridge.session.setTools([]);
      await bridge.agent.synchronize();
      return [...seen, typeOf()];
    },
    expected: ["shared", "LANGUAGE_SERVER_NAME_TAKEN", "client", undefined, "mine", "shared"],
  },
  {
    name: "a call asks for permission once, when the server asks, and runs if it is allowed",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { tools: [echo] });
      const turn = await bridge.turn([["echo", { text: "hello" }]]);
      return {
        asked: bridge.asked.map(({ kind, toolName, toolArgs }) => ({ kind, toolName, toolArgs })),
        results: bridge.results,
        calls: brief(turn),
      };
    },
    expected: {
      asked: [{ kind: "custom-tool", toolName: "echo", toolArgs: { text: "hello" } }],
      results: ["hello"],
      calls: [["echo", "completed"]],
    },
  },
  {
    name: "a call does not run when the user rejects it, no client can allow it, or a rule denies it",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { tools: [echo], session: { onPermissionRequest: () => ({ decision: "deny" }) } });
      const seen: unknown[] = [];
      const changes = [{}, { onPermissionRequest: undefined }, { onPermissionRequest: approveAll, permissions: { deny: ["echo"] } }];
      for (const change of changes) {
        await bridge.session.update(change);
        const { outcome, calls } = await bridge.turn([["echo", { text: "hello" }]]);
        seen.push([outcome, calls[0]?.status, bridge.results[0]]);
      }
      return seen;
    },
    expected: Array(3).fill(["completed", "cancelled", skipped]),
  },
  {
    name: "the bridge asks for permission itself when the server does not",
    run: async (server) => {
      const ran: string[] = [];
      const tool = defineTool("touch", { description: "d", parameters: nothing, handler: () => void ran.push("ran") });
      const onPermissionRequest = (): object => {
        ran.push("asked");
        return { decision: "deny", reason: "not now" };
      };
      await using bridge = await Bridge.start(server, { tools: [tool], options: { autoApproval: true }, session: { onPermissionRequest } });
      const turn = await bridge.turn([["touch"]]);
      return { ran, calls: brief(turn) };
    },
    expected: { ran: ["asked"], calls: [["touch", "error"]] },
  },
  {
    name: "the server reads only what the session's rules or the user allow",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { session: { onPermissionRequest: undefined } });
      const path = `${bridge.folder}/note.txt`;
      bridge.agent.openDocument(`file://${path}`, "plaintext", "unsaved text");
      const seen: unknown[] = [];
      for (const allow of [[], ["read"]]) {
        await bridge.session.update({ permissions: { allow } });
        const { calls } = await bridge.turn([["read_file", { filePath: path }]]);
        seen.push([calls[0]?.status, bridge.results[0]?.includes("unsaved text")]);
      }
      return seen;
    },
    expected: [
      ["cancelled", false],
      ["completed", true],
    ],
  },
  {
    name: "a terminal tool ends the turn",
    run: async (server) => {
      const last = defineTool("finish", { description: "d", isTerminal: true, handler: () => "That was it." });
      await using bridge = await Bridge.start(server, { tools: [last] });
      const { outcome, calls } = await bridge.turn([["finish"]]);
      return { outcome, called: calls.map(({ name }) => name), requests: bridge.backend.asked.length <= 2 };
    },
    expected: { outcome: "completed", called: ["finish"], requests: true },
  },
  {
    name: "a handler gets the same invocation as in any other turn",
    run: async (server) => {
      let seen: Record<string, unknown> = {};
      const tool = defineTool("look", {
        description: "d",
        parameters: nothing,
        handler: (args, invocation) => {
          seen = { ...invocation, args };
          return "ok";
        },
      });
      await using bridge = await Bridge.start(server, { tools: [tool] });
      const turn = await bridge.turn([["look", { a: 1 }]]);
      const { sessionId, workingDirectory, signal, ...others } = seen;
      const [call] = turn.calls;
      return {
        ...others,
        isSession: sessionId === bridge.session.id && workingDirectory === bridge.folder,
        hasSignal: signal instanceof AbortSignal,
        extras: [call?.roundId, call?.turnId === turn.turnId],
      };
    },
    expected: {
      toolCallId: "call-0",
      toolName: "look",
      arguments: { a: 1 },
      args: { a: 1 },
      isSession: true,
      hasSignal: true,
      extras: [1, true],
    },
  },
];

const echo: ToolLike = defineTool("echo", {
  description: "Repeats its input.",
  parameters: { type: "object", properties: { text: { type: "string", description: "What." } }, required: ["text"] },
  handler: ({ text }) => text,
});

function brief({ calls }: { readonly calls: readonly { readonly name: string; readonly status: string }[] }): readonly unknown[] {
  return calls.map(({ name, status }) => [name, status]);
}

/** The registered tools on the server, without its own. */
function ours({ agent }: Bridge): readonly string[] {
  return agent.tools.filter(({ id }) => id.startsWith("copilot-editor.")).map(({ name }) => name);
}

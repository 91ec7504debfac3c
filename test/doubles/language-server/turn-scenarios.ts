import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Scenario } from "./protocol-scenarios.ts";
import type { RawClient } from "./raw-client.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever the server says
type Json = any;

const weather = {
  name: "weather",
  description: "Returns the weather.",
  inputSchema: { type: "object", properties: { city: { type: "string", description: "Where." } }, required: ["city"] },
};
const confirmation = "conversation/invokeClientToolConfirmation";
const invocation = "conversation/invokeClientTool";

/** How a turn runs: which tools are offered and called, which calls ask for confirmation, and how it ends. */
export const turnScenarios: readonly Scenario<RawClient>[] = [
  {
    name: "the server calls a tool by its registered name, with the arguments of the model",
    async run(client) {
      await calls(client, ["my.tool"], [{ name: "my_tool", arguments: { city: 7, more: [] } }]);
      const { name, input, roundId, toolCallId } = client.asked.find(({ method }) => method === invocation)?.params ?? {};
      await unregister(client, "my.tool");
      return { name, input, roundId, toolCallId, results: client.results };
    },
    expected: { name: "my.tool", input: { city: 7, more: [] }, roundId: 1, toolCallId: "call-0", results: ["ok"] },
  },
  {
    name: "the calls of one message run one after the other",
    async run(client) {
      const steps: string[] = [];
      client.onInvoke = async ({ toolCallId }) => {
        steps.push(`begin ${toolCallId}`);
        await new Promise((resolve) => setImmediate(resolve));
        steps.push(`end ${toolCallId}`);
        return [{ content: [{ value: toolCallId }] }, null];
      };
      await calls(client, ["weather"], [{ name: "weather" }, { name: "weather" }]);
      return { steps, results: client.results };
    },
    expected: { steps: ["begin call-0", "end call-0", "begin call-1", "end call-1"], results: ["call-0", "call-1"] },
  },
  {
    name: "the server does not call an unregistered tool",
    async run(client) {
      await calls(client, ["weather"], [{ name: "nonsense" }]);
      return { asked: client.asked.length, results: client.results };
    },
    expected: {
      asked: 0,
      results: ["Tool call failed with error: Tool with name nonsense not found in registered tools"],
    },
  },
  {
    name: "the model gets no registered tool in Ask mode",
    async run(client) {
      await client.request("conversation/registerTools", { tools: [weather] });
      client.backend.answer({ content: "Hello." });
      await client.turn("Hello?", { chatMode: "Ask" });
      return { offered: offered(client).includes("weather"), said: said(client) };
    },
    expected: { offered: false, said: "Hello." },
  },
  {
    name: "the model gets enabled tools and no disabled ones",
    async run(client) {
      await client.request("conversation/registerTools", { tools: [weather] });
      const seen: boolean[] = [];
      for (const status of ["disabled", "enabled"]) {
        await client.request("conversation/updateToolsStatus", { chatModeKind: "Agent", tools: [{ name: "weather", status }] });
        client.backend.answer({ content: "Hello." });
        await client.turn("Hello?");
        seen.push(offered(client).includes("weather"));
      }
      return seen;
    },
    expected: [false, true],
  },
  {
    name: "the server reports all text of the model in order",
    async run(client) {
      const text = "First line.\n\nSecond, with ünïcode 🙂.\n- one\n- two\n";
      client.backend.answer(
        { content: "Let me see.\n", toolCalls: [{ id: "call-0", name: "weather", arguments: {} }] },
        { content: text.repeat(20) },
      );
      await client.request("conversation/registerTools", { tools: [weather] });
      await client.turn("Well?");
      return said(client) === `Let me see.\n${text.repeat(20)}`;
    },
    expected: true,
  },
  {
    name: "a second turn continues the conversation, and a destroyed conversation is forgotten",
    async run(client) {
      client.backend.answer({ content: "One." }, { content: "Two." });
      const { conversationId } = await client.turn("First?");
      client.progress.length = 0;
      await client.request("conversation/turn", {
        workDoneToken: "again",
        conversationId,
        message: "Second?",
        chatMode: "Agent",
        modelInfo: { id: "gpt-4.1" },
        model: "gpt-4.1",
      });
      const remembers = JSON.stringify(client.backend.asked.at(-1)).includes("First?");
      return { said: said(client), remembers, forgot: await client.request("conversation/destroy", { conversationId }) };
    },
    expected: { said: "Two.", remembers: true, forgot: "OK" },
  },
  ...asking(),
  ...documents(),
  ...failing(),
  {
    name: "a cancelled turn is reported at once, and its request is answered after its running call",
    async run(client) {
      let [isOver, isAnswered] = [false, false];
      client.onInvoke = async () => {
        client.notify("window/workDoneProgress/cancel", { token: "cancelled" });
        await client.ended();
        isAnswered = isOver;
        return [{ content: [{ value: "late" }] }, null];
      };
      await calls(client, ["weather"], [{ name: "weather" }], { workDoneToken: "cancelled" });
      isOver = true;
      return { isAnswered, reason: client.end?.cancellationReason };
    },
    expected: { isAnswered: false, reason: "CancelledByUser" },
  },
];

/** When the server asks for confirmation before a call. */
function asking(): readonly Scenario<RawClient>[] {
  const every = { editorHandlesAllConfirmation: true };
  return [
    asks("does not ask about a registered tool by default", {}, "weather", undefined),
    asks("does not ask about a registered tool with confirmation texts by default", {}, "weather", undefined, {
      confirmationMessages: { title: "t", message: "m" },
    }),
    asks("asks about every call when the editor handles all confirmations", every, "weather", {
      title: "Run copilot-editor.weather",
      message: 'Do you want to allow "copilot-editor.weather" to run?',
      toolType: "safe_tool",
    }),
    asks("asks about a terminal command by default", {}, "run_in_terminal", {
      title: "Run copilot-editor.run_in_terminal",
      message: 'Do you want to allow "copilot-editor.run_in_terminal" to run?',
      toolType: "terminal",
    }),
    asks(
      "does not ask about a terminal command that the settings approve",
      { toolConfirmAutoApprove: true, autoApproveYoloMode: true },
      "run_in_terminal",
      undefined,
    ),
    {
      name: "a dismissed call does not run",
      async run(client) {
        client.onConfirm = () => [{ result: "dismiss" }, null];
        client.configure(every);
        await calls(client, ["weather"], [{ name: "weather" }]);
        client.configure({});
        return { made: client.asked.some(({ method }) => method === invocation), status: client.calls[0]?.status, results: client.results };
      },
      expected: {
        made: false,
        status: "cancelled",
        results: ["Tool call is cancelled with result: The user chose to skip the tool call, they want to proceed without running it"],
      },
    },
    ...[{ result: "accept" }, [{ result: "perhaps" }, null], [null, { code: 1, message: "no" }]].map((answer) => ({
      name: `the answer ${JSON.stringify(answer)} does not confirm a call`,
      async run(client: RawClient) {
        client.onConfirm = () => answer;
        client.configure(every);
        await calls(client, ["weather"], [{ name: "weather" }]);
        client.configure({});
        return { made: client.asked.some(({ method }) => method === invocation), status: client.calls[0]?.status };
      },
      expected: { made: false, status: "error" },
    })),
  ];
}

function asks(what: string, agent: object, name: string, expected: object | undefined, more: object = {}): Scenario<RawClient> {
  return {
    name: `the server ${what}`,
    async run(client) {
      client.configure(agent);
      await calls(client, [name], [{ name, arguments: { command: "ls" } }], {}, more);
      client.configure({});
      await unregister(client, name);
      const { title, message, input } = client.asked.find(({ method }) => method === confirmation)?.params ?? {};
      const asked = title === undefined ? undefined : { title, message, toolType: input?.toolType };
      return { asked, status: client.calls[0]?.status };
    },
    expected: { asked: expected, status: "completed" },
  };
}

/** The content of open documents takes precedence over files on disk. */
function documents(): readonly Scenario<RawClient>[] {
  return [
    {
      name: "read_file returns the open document, then its new version, then the file on disk after it is closed",
      async run(client) {
        const file = join(client.folder, "note.txt");
        const uri = pathToFileURL(file).href;
        writeFileSync(file, "on disk");
        const read = async (): Promise<string | undefined> => {
          await calls(client, [], [{ name: "read_file", arguments: { filePath: file } }]);
          return /opened|changed|on disk/.exec(client.results.at(-1) ?? "")?.[0];
        };
        const seen = [await read()];
        client.notify("textDocument/didOpen", { textDocument: { uri, languageId: "plaintext", version: 1, text: "opened" } });
        seen.push(await read());
        client.notify("textDocument/didChange", { textDocument: { uri, version: 2 }, contentChanges: [{ text: "changed" }] });
        seen.push(await read());
        client.notify("textDocument/didClose", { textDocument: { uri } });
        return [...seen, await read()];
      },
      expected: ["on disk", "opened", "changed", "on disk"],
    },
  ];
}

/** The request for a turn succeeds however the turn ends. */
function failing(): readonly Scenario<RawClient>[] {
  return [
    { status: 402, code: 402, message: "Quota Exceeded" },
    { status: 401, code: 401, message: "Oops, you are not authorized" },
    { status: 400, code: 400, message: "" },
  ].map(({ status, code, message }) => ({
    name: `a turn whose model answers with ${status} fails in its last report only`,
    async run(client: RawClient) {
      client.backend.answer({ status });
      const answer = await client.turn("Hello?");
      client.backend.forget();
      const { error } = client.end ?? {};
      return { answered: typeof answer.turnId, code: error?.code, message: error?.message?.slice(0, message.length) };
    },
    expected: { answered: "string", code, message },
  }));
}

interface Call {
  readonly name: string;
  readonly arguments?: object;
}

/** Runs a turn in which the model makes calls, then answers. */
async function calls(
  client: RawClient,
  names: readonly string[],
  made: readonly Call[],
  extra: object = {},
  tool: object = {},
): Promise<void> {
  const tools = names.map((name) => ({ ...weather, name, ...tool }));
  if (tools.length > 0) await client.request("conversation/registerTools", { tools });
  const toolCalls = made.map((call, index) => ({ id: `call-${index}`, name: call.name, arguments: call.arguments ?? {} }));
  client.backend.answer({ toolCalls }, { content: "done" });
  await client.turn("Do it.", extra);
}

function unregister(client: RawClient, name: string): Promise<unknown> {
  return client.request("conversation/unregisterTools", { toolIds: [`copilot-editor.${name}`] });
}

function offered(client: RawClient): readonly string[] {
  return (client.backend.asked.at(-1)?.tools ?? []).map((tool: Json) => tool.function.name);
}

function said(client: RawClient): string {
  const reports = client.progress.filter(({ kind }) => kind === "report");
  return reports.flatMap(({ reply, editAgentRounds = [] }) => [reply, ...editAgentRounds.map((round: Json) => round.reply)]).join("");
}

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Scenario } from "./protocol-scenarios.ts";
import type { RawClient } from "./raw-client.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever the server says
type Json = any;

const weather = {
  name: "weather",
  description: "Tells the weather.",
  inputSchema: { type: "object", properties: { city: { type: "string", description: "Where." } }, required: ["city"] },
};
const confirmation = "conversation/invokeClientToolConfirmation";
const invocation = "conversation/invokeClientTool";

/** How a turn goes: what is offered, what is called, who is asked first, and how it ends. */
export const turnScenarios: readonly Scenario<RawClient>[] = [
  {
    name: "calls a tool by the name that it was registered under, with what the model gave",
    async run(client) {
      await calls(client, ["my.tool"], [{ name: "my_tool", arguments: { city: 7, more: [] } }]);
      const { name, input, roundId, toolCallId } = client.asked.find(({ method }) => method === invocation)?.params ?? {};
      await unregister(client, "my.tool");
      return { name, input, roundId, toolCallId, results: client.results };
    },
    expected: { name: "my.tool", input: { city: 7, more: [] }, roundId: 1, toolCallId: "call-0", results: ["ok"] },
  },
  {
    name: "makes the calls of one message one after the other",
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
    name: "does not call a tool that nobody registered",
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
    name: "offers the model no tool of ours in the mode Ask",
    async run(client) {
      await client.request("conversation/registerTools", { tools: [weather] });
      client.backend.answer({ content: "Hello." });
      await client.turn("Hello?", { chatMode: "Ask" });
      return { offered: offered(client).includes("weather"), said: said(client) };
    },
    expected: { offered: false, said: "Hello." },
  },
  {
    name: "offers what is enabled, and not what is disabled",
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
    name: "says everything that the model says, in order",
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
    name: "goes on with a conversation, and forgets it",
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
    name: "tells at once that a turn is cancelled, and answers its request when its call has answered",
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

/** Who is asked before a call. */
function asking(): readonly Scenario<RawClient>[] {
  const every = { editorHandlesAllConfirmation: true };
  return [
    asks("about nothing of ours by default", {}, "weather", undefined),
    asks("about nothing of ours by default, whatever its texts", {}, "weather", undefined, {
      confirmationMessages: { title: "t", message: "m" },
    }),
    asks("about every call when the editor decides", every, "weather", {
      title: "Run copilot-editor.weather",
      message: 'Do you want to allow "copilot-editor.weather" to run?',
      toolType: "safe_tool",
    }),
    asks("about a terminal by default", {}, "run_in_terminal", {
      title: "Run copilot-editor.run_in_terminal",
      message: 'Do you want to allow "copilot-editor.run_in_terminal" to run?',
      toolType: "terminal",
    }),
    asks(
      "about no terminal that is approved beforehand",
      { toolConfirmAutoApprove: true, autoApproveYoloMode: true },
      "run_in_terminal",
      undefined,
    ),
    {
      name: "a call that is dismissed is not made",
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
      name: `a confirmation that is ${JSON.stringify(answer)} is no confirmation`,
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
    name: `asks ${what}`,
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

/** What is open in the editor is read before what is on the disk. */
function documents(): readonly Scenario<RawClient>[] {
  return [
    {
      name: "reads what is open, then what it became, then the disk again",
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

/** The request for a turn is answered as usual, whatever became of the turn. */
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

/** A turn in which the model makes some calls, and then says something. */
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

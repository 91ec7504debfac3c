import { defineTool, type ToolLike } from "skillhost";
import { Bridge } from "./bridge.ts";
import type { BridgeScenario } from "./bridge-scenarios.ts";

const nothing = { type: "object", properties: {} } as const;
const greet = (text: string): ToolLike => defineTool("greet", { description: `Says ${text}.`, parameters: nothing, handler: () => text });

/** How servers and turns start, fail and end. */
export const lifeScenarios: readonly BridgeScenario[] = [
  {
    name: "a turn emits the answer in pieces, the status of each call, and one result at the end",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { tools: [greet("hello")] });
      bridge.backend.answer(
        { content: "Let me see.", toolCalls: [{ id: "call-0", name: "greet", arguments: {} }] },
        { content: "All done, and well." },
      );
      const heard: string[] = [];
      const statuses: string[] = [];
      const turn = await bridge.agent.send("Greet.", {
        onText: (text) => heard.push(text),
        onCall: ({ name, status }) => statuses.push(`${name} ${status}`),
      });
      const { text, outcome, model, calls } = turn;
      return {
        text,
        isHeard: heard.join("") === text,
        statuses,
        outcome,
        model,
        calls: calls.map(({ id, status, result }) => ({ id, status, result })),
      };
    },
    expected: {
      text: "Let me see.\n\nAll done, and well.",
      isHeard: true,
      statuses: ["greet running", "greet completed"],
      outcome: "completed",
      model: "GPT-4.1",
      calls: [{ id: "call-0", status: "completed", result: "hello" }],
    },
  },
  {
    name: "a failed turn gives its reason, although the server answers as if it had succeeded",
    run: async (server) => {
      await using bridge = await Bridge.start(server);
      const seen: unknown[] = [];
      for (const status of [402, 401, 400]) {
        bridge.backend.answer({ status });
        const { outcome, error, text } = await bridge.agent.send("Hello?");
        seen.push([outcome, error?.code, (error?.message ?? "").split(" ")[0], text]);
      }
      return seen;
    },
    expected: [
      ["failed", 402, "Quota", ""],
      ["failed", 401, "Oops,", ""],
      ["failed", 400, "Sorry,", ""],
    ],
  },
  {
    name: "a second turn continues the conversation",
    run: async (server) => {
      await using bridge = await Bridge.start(server);
      bridge.backend.answer({ content: "One." }, { content: "Two." });
      const first = await bridge.agent.send("First?");
      const second = await bridge.agent.send("Second?", { conversationId: first.conversationId });
      await bridge.agent.forget(first.conversationId);
      const isSame = first.conversationId === second.conversationId && first.turnId !== second.turnId;
      return { text: second.text, isSame, remembers: JSON.stringify(bridge.backend.asked.at(-1)).includes("First?") };
    },
    expected: { text: "Two.", isSame: true, remembers: true },
  },
  {
    name: "a turn fails without a request to the model when the user is not signed in",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { tools: [greet("hello")], isSignedOut: true });
      const { status } = await bridge.agent.checkStatus();
      const code = await bridge.agent.send("Hello?").catch((error: { code: string }) => error.code);
      const isRegistered = bridge.agent.tools.some(({ name }) => name === "greet");
      return { status, code, isRegistered, asked: bridge.backend.asked.length };
    },
    expected: { status: "NotSignedIn", code: "LANGUAGE_SERVER_SIGN_IN", isRegistered: true, asked: 0 },
  },
  {
    name: "an aborted turn aborts the signal of its running handler, and a turn with an aborted signal does not start",
    run: async (server) => {
      const stop = new AbortController();
      let wasAborted = false;
      const wait = defineTool("wait", {
        description: "d",
        parameters: nothing,
        handler: (_args, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              wasAborted = true;
              resolve("late");
            });
            stop.abort();
          }),
      });
      await using bridge = await Bridge.start(server, { tools: [wait, greet("hello")] });
      const { outcome } = await bridge.turn([["wait"]], { signal: stop.signal });
      bridge.backend.forget();
      const next = await bridge.turn([["greet"]]);
      const asked = bridge.backend.asked.length;
      const late = await bridge.agent.send("Hello?", { signal: AbortSignal.abort(new Error("no")) }).catch(String);
      const isAsked = bridge.backend.asked.length > asked;
      return { outcome, wasAborted, next: next.outcome, results: bridge.results.at(-1), late, isAsked };
    },
    expected: { outcome: "cancelled", wasAborted: true, next: "completed", results: "hello", late: "Error: no", isAsked: false },
  },
  {
    name: "a disabled tool is not offered, also after a restart of the server",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { tools: [greet("hello")] });
      const seen: boolean[] = [];
      const look = async (): Promise<void> => {
        await bridge.turn([]);
        seen.push(bridge.offered.includes("greet"));
      };
      await bridge.agent.setToolStatus({ greet: "disabled" });
      await look();
      await bridge.agent.restart();
      await look();
      await bridge.agent.setToolStatus({ greet: "enabled" });
      await look();
      return seen;
    },
    expected: [false, false, true],
  },
  {
    name: "a crashed server rejects its pending requests, and the next server has the same tools",
    run: async (server) => {
      let die = (): void => {};
      const wait = defineTool("wait", {
        description: "d",
        parameters: nothing,
        handler: (_args, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => resolve("late"));
            die();
          }),
      });
      await using bridge = await Bridge.start(server, { tools: [wait, greet("hello")] });
      const { agent } = bridge;
      const first = agent.pid!;
      die = () => process.kill(first, "SIGKILL");
      const code = await bridge.turn([["wait"]]).catch((error: { code: string }) => error.code);
      bridge.backend.forget();
      const { state } = agent;
      const { outcome } = await bridge.turn([["greet"]]);
      const second = agent.pid!;
      await agent.close();
      return { code, state, outcome, isAnother: first !== second, left: [first, second].filter(isAlive), after: agent.state };
    },
    expected: { code: "LANGUAGE_SERVER_EXITED", state: "stopped", outcome: "completed", isAnother: true, left: [], after: "closed" },
  },
  {
    name: "the server ends with its session",
    run: async (server) => {
      await using bridge = await Bridge.start(server);
      const { pid } = bridge.agent;
      await bridge.session.disconnect();
      await bridge.agent.close();
      return { state: bridge.agent.state, isAlive: isAlive(pid!) };
    },
    expected: { state: "closed", isAlive: false },
  },
];

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // The process does not exist.
    return false;
  }
}

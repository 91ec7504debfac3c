import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { defineTool, type ToolLike } from "skillhost";
import { tempSkill } from "skillhost/testing";
import { chatAnswer, startScriptedModel } from "../scripted-model.ts";
import { Bridge } from "./bridge.ts";
import type { BridgeScenario } from "./bridge-scenarios.ts";

const bundledFacts = fileURLToPath(new URL("../../../skills/fact-lookup", import.meta.url));
const nothing = { type: "object", properties: {} } as const;
const greet = (text: string): ToolLike => defineTool("greet", { description: `Says ${text}.`, parameters: nothing, handler: () => text });

/** How a running server follows changes of skills, tools and files. */
export const changeScenarios: readonly BridgeScenario[] = [
  {
    name: "the server follows the session's tools as they are added, changed and removed",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { tools: [greet("hello")] });
      const { session, agent } = bridge;
      const seen: unknown[] = [];
      const look = async (): Promise<void> => {
        await agent.synchronize();
        const listed = agent.tools.filter(({ id }) => id.startsWith("copilot-editor."));
        seen.push(listed.map(({ name, description }) => `${name}: ${description}`).sort());
      };
      await look();
      await session.setTools([greet("good day"), defineTool("part", { description: "Parts.", handler: () => "bye" })]);
      await look();
      await session.setTools([]);
      await look();
      return seen;
    },
    expected: [["greet: Says hello."], ["greet: Says good day.", "part: Parts."], []],
  },
  {
    name: "a tool that is saved during a turn is called in its new version",
    run: async (server) => {
      using skill = tempSkill({ "SKILL.md": skillDocument, "tools/greet.ts": greeting("hello") }, { name: "greeter" });
      await using bridge = await Bridge.start(server, { skills: skill.root });
      const { backend, session } = bridge;
      const call = { name: "greet", arguments: {} };
      const saved = new Promise<void>((resolve) => {
        bridge.host.on("skills.changed", () => resolve());
      });
      const hook = session.on("tool.execution_complete", () => skill.write("tools/greet.ts", greeting("good day")));
      backend.answer({ toolCalls: [{ id: "call-0", ...call }] });
      // The model answers after the tool is reloaded.
      backend.answer({ toolCalls: [{ id: "call-1", ...call }], pace: () => saved });
      backend.answer({ content: "Done." });
      const turn = await bridge.agent.send("Greet twice.", {
        onCall: ({ id, status }) => void (id === "call-0" && status !== "running" && hook()),
      });
      return { outcome: turn.outcome, results: bridge.results };
    },
    expected: { outcome: "completed", results: ["hello", "good day"] },
  },
  {
    name: "a new conversation begins with the list of skills",
    run: async (server) => {
      using skill = tempSkill({ "SKILL.md": skillDocument, "prompts/tone.md": "Be brief.", "skill.json": manifest }, { name: "greeter" });
      await using bridge = await Bridge.start(server, { skills: skill.root });
      await bridge.turn([]);
      const asked = JSON.stringify(bridge.backend.asked.at(-1)?.messages);
      return {
        isListed: asked.includes("- greeter: Greets people. Use it when the user says hello.") && asked.includes("greeter/SKILL.md)"),
        isEager: asked.includes("Be brief."),
        isAsked: asked.includes("Do it."),
      };
    },
    expected: { isListed: true, isEager: true, isAsked: true },
  },
  {
    name: "the server's model gets the same results as a session's own model",
    run: async (server) => {
      await using own = await startScriptedModel();
      const provider = { type: "openai", baseUrl: `${own.url}/v1` } as const;
      await using bridge = await Bridge.start(server, { skills: bundledFacts, session: { model: "own", provider } });
      const topics = ["PHP", "nothing of the kind"];
      const toolCalls = topics.map((topic, index) => ({ id: `call-${index}`, name: "lookup_fact", arguments: { topic } }));
      own.answer(chatAnswer({ toolCalls }), chatAnswer({ content: "Done." }));
      await bridge.session.sendAndWait("Look them up.");
      const seen = own.requests.at(-1)!.body.messages.filter(({ role }: { role: string }) => role === "tool");
      await bridge.turn(topics.map((topic) => ["lookup_fact", { topic }]));
      const failed = "Tool call failed with error: ";
      return {
        isSame: isDeepStrictEqual(
          seen.map(({ content }: { content: string }) => content),
          bridge.results.map((text) => text.replace(failed, "")),
        ),
        failure: bridge.results[1],
      };
    },
    expected: { isSame: true, failure: "Tool call failed with error: No fact stored for nothing of the kind." },
  },
  {
    name: "modules with SCHEMA and execute are tools, in every form of their results",
    run: async (server) => {
      using skill = tempSkill({ "SKILL.md": skillDocument, ...legacyTools }, { name: "greeter" });
      await using bridge = await Bridge.start(server, { skills: skill.root });
      const path = join(bridge.folder, "note.txt");
      const names = ["parts", "done", "broken", "write_note"];
      const turn = await bridge.turn([...names.map((name) => [name] as const), ["read_file", { filePath: path }]]);
      const required = bridge.agent.tools.find(({ name }) => name === "parts")?.inputSchema?.["required"];
      const notes = bridge.results.at(-1)?.includes("kept in the editor");
      return { results: bridge.results.slice(0, 4), statuses: turn.calls.map(({ status }) => status), notes, required };
    },
    expected: {
      results: ["one\ntwo <workspace>", "Done.", "Tool call failed with error: There is no such thing.", "Done."],
      statuses: ["completed", "completed", "error", "completed", "completed"],
      notes: true,
      required: [],
    },
  },
  {
    name: "the server reads what a tool wrote, and the file on disk after that has changed",
    run: async (server) => {
      const write = defineTool("save", {
        description: "d",
        parameters: nothing,
        handler: (_args, { workingDirectory }, { fileChanged }) => {
          // The file on disk differs, which shows where the server reads.
          writeFileSync(join(workingDirectory, "note.txt"), "from the disk");
          fileChanged("note.txt", "from the tool");
          return "saved";
        },
      });
      await using bridge = await Bridge.start(server, { tools: [write] });
      const path = join(bridge.folder, "note.txt");
      const seen = (): unknown => bridge.results.map((text) => /from the \w+|saved/.exec(text)?.[0]);
      await bridge.turn([["save"], ["read_file", { filePath: path }]]);
      const together = seen();
      await bridge.turn([["read_file", { filePath: path }]]);
      const later = seen();
      rmSync(path);
      await bridge.turn([["read_file", { filePath: path }]]);
      return { together, later, isGone: !bridge.results[0]?.includes("from the") };
    },
    expected: { together: ["saved", "from the tool"], later: ["from the disk"], isGone: true },
  },
];

const skillDocument = "---\nname: greeter\ndescription: Greets people. Use it when the user says hello.\n---\n\nGreet.\n";

const manifest = JSON.stringify({ name: "greeter", prompts: ["prompts/tone.md"], promptMode: "eager" });

const legacyTools = Object.fromEntries(
  Object.entries({
    parts:
      '[{ type: "text", value: "one" }, { type: "text", value: `two ${context.workspaceRoot === process.cwd() ? "" : "<workspace>"}` }]',
    done: '({ result: "success", message: "Done." })',
    broken: '({ result: "error", message: "There is no such thing." })',
    write_note: `(context.syncFileToServer("note.txt", "written"),
      context.openDocument(pathToFileURL(context.workspaceRoot + "/note.txt").href, "plaintext", "kept in the editor"),
      { result: "success", message: "Done." })`,
  }).map(([name, answer]) => [
    `tools/${name}.ts`,
    `import { pathToFileURL } from "node:url";
import type { ExecuteContext } from "skillhost";
export const SCHEMA = { name: "${name}", description: "d", inputSchema: { type: "object", properties: {}, required: [] } };
export function execute(_input: object, context: ExecuteContext): unknown { void pathToFileURL; return ${answer}; }
`,
  ]),
);

function greeting(text: string): string {
  return `import { defineTool } from "skillhost";
export default defineTool("greet", { description: "Greets.", parameters: { type: "object", properties: {} }, handler: () => ${JSON.stringify(text)} });
`;
}

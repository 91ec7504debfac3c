import { expect, onTestFinished, test } from "vitest";
import { chatStreamAnswer, startScriptedModel } from "../doubles/scripted-model.ts";
import { runCli, skillDocument, toolModule, workplace } from "./run-cli.ts";

const files = {
  "skills/a/SKILL.md": skillDocument("a"),
  "skills/a/tools/greet.ts": toolModule("greet", "Hello"),
  "skills/a/tools/wave.ts": toolModule("wave", "Waves at"),
  ".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: Reviews.\ntools: greet\n---\nYou review things.\n",
  ".claude/agents/team/careful.md": "---\nname: careful\ndescription: Careful.\ndisallowedTools: wave\n---\nTake care.\n",
  ".github/agents/release.agent.md":
    "---\nname: Release Manager\ndescription: Releases.\nuser-invocable: true\npermissionMode: plan\n---\nYou release.\n",
  ".github/agents/helper.agent.md": "---\ndescription: Helps others.\nuser-invocable: false\n---\nYou help.\n",
  ".github/agents/README.md": "# Agents\n",
  "agents/reviewer.md": "---\nname: reviewer\ndescription: The other one.\n---\nYou are not used.\n",
  "elsewhere/x.md": "---\ndescription: Elsewhere.\n---\nYou are elsewhere.\n",
};

async function run(...argv: readonly string[]) {
  const endpoint = await startScriptedModel();
  onTestFinished(() => endpoint.close());
  endpoint.answer(chatStreamAnswer({ content: "Done." }));
  const place = workplace(files);
  onTestFinished(() => place[Symbol.dispose]());
  const env = { OPENAI_BASE_URL: `${endpoint.url}/v1`, OPENAI_API_KEY: "sk-0123456789abcdef" };
  const result = await runCli(["run", "Go.", "--model", "m-1", ...argv], { cwd: place.path, env });
  const body = endpoint.requests[0]?.body;
  return {
    ...result,
    system: (body?.messages[0]?.content ?? "") as string,
    tools: ((body?.tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name),
  };
}

test("run --agent uses the agent's prompt and tools", async () => {
  const { code, stdout, system, tools } = await run("--agent", "reviewer");
  expect([code, stdout]).toEqual([0, "Done.\n"]);
  expect(system).toContain("You review things.");
  expect(tools).toContain("greet");
  expect(tools).not.toContain("wave");
});

test("the excluded tools of an agent are excluded from the run", async () => {
  const { system, tools } = await run("--agent", "careful", "--excluded", "nothing");
  expect(system).toContain("Take care.");
  expect(tools).toContain("greet");
  expect(tools).not.toContain("wave");
});

test("run finds an agent by its file name, its title or its path, and reports fields without effect", async () => {
  const byTitle = await run("--agent", "release manager");
  expect(byTitle.system).toContain("You release.");
  expect(byTitle.stderr).toMatch(/release\.agent\.md:5:\d+ warning AGENT_KEY_UNSUPPORTED /);
  expect((await run("--agent", "release")).system).toContain("You release.");
  expect((await run("--agent", "elsewhere/x.md")).system).toContain("You are elsewhere.");
});

test.each([
  ["missing", 1, 'No agent is named "missing".'],
  ["reviewr", 1, 'Did you mean "reviewer"'],
  ["helper", 1, 'Agent "helper" can only be started by other agents'],
  ["missing.md", 1, "error FILE_MISSING"],
  [".github/agents/README.md", 1, "does not define an agent"],
])("run refuses the agent %j", async (name, code, text) => {
  const result = await run("--agent", name);
  expect(result.code).toBe(code);
  expect(result.stderr).toContain(text);
  expect(result.system).toBe("");
});

test("with --json, the envelope contains the problems of the agent's file", async () => {
  const { stdout } = await run("--agent", "reviewer", "--json");
  const envelope = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  expect(envelope).toMatchObject({ ok: true, command: "run", diagnostics: [{ severity: "info", code: "AGENT_LEFT_OUT" }] });
});

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { buildPackage } from "../built-package.ts";
import { chatStreamAnswer, startScriptedModel } from "../doubles/scripted-model.ts";
import { tempFolder } from "../skills/kit.ts";
import { patience } from "../slowness.ts";

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line of the package with a model that writes todos, and says when it is done. */
async function runWithTodos(argv: readonly string[], input = "", home = tempFolder()): Promise<Ended & { readonly tools: string[] }> {
  const sql = (query: string) => chatStreamAnswer({ toolCalls: [{ id: query, name: "sql", arguments: { description: "Plans", query } }] });
  const model = await startScriptedModel();
  onTestFinished(() => model.close());
  model.answer(
    sql("INSERT INTO todos (id, title, status) VALUES ('a', 'Reading the files', 'in_progress'), ('b', 'Fixing the bug', 'pending')"),
    sql("UPDATE todos SET status = 'done' WHERE id = 'a'"),
    chatStreamAnswer({ content: "Done." }),
  );
  const child = spawn(process.execPath, [buildPackage().bin, ...argv, "--model", "m"], {
    cwd: tempFolder(),
    env: { ...process.env, OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: "sk-x", SKILLHOST_HOME: home },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdin.end(input);
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  const tools = (model.requests[0]?.body.tools ?? []).map(({ function: { name } }: { function: { name: string } }) => name);
  return { code, stdout, stderr, tools };
}

test("run --todos shows how far the model is, and in the end the list", { timeout: patience(60_000) }, async () => {
  const { code, stdout, stderr } = await runWithTodos(["run", "Fix it.", "--todos"]);
  expect([code, stdout]).toEqual([0, "Done.\n"]);
  expect(stderr).toContain("todos: 0 of 2 done, now: Reading the files\n");
  expect(stderr).toContain("todos: 1 of 2 done\n");
  expect(stderr).toMatch(/\n\[x\] Reading the files\n\[ \] Fixing the bug\n$/);
});

test("without --todos the model has no such tool", { timeout: patience(60_000) }, async () => {
  const { tools, stderr } = await runWithTodos(["run", "Fix it."]);
  expect(tools).not.toContain("sql");
  expect(stderr).not.toContain("todos:");
});

test("chat lists them with /todos, also when the conversation is resumed", { timeout: patience(60_000) }, async () => {
  const home = tempFolder();
  const { stderr } = await runWithTodos(["chat", "--todos"], "/todos\nFix it.\n/todos\n", home);
  expect(stderr).toMatch(/The model has no todos\.\n[\s\S]*\[x\] Reading the files\n\[ \] Fixing the bug\n/);
  const resumed = await runWithTodos(["chat", "--resume"], "/todos\n", home);
  expect(resumed.stderr).toMatch(/\n\[x\] Reading the files\n\[ \] Fixing the bug\n/);
});

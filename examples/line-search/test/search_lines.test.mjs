import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { testSkill } from "skillhost/testing";

let workingDirectory;
let skill;

before(async () => {
  workingDirectory = await mkdtemp(join(tmpdir(), "line-search-"));
  await writeFile(join(workingDirectory, "big.log"), `${"all is well\n".repeat(200_000)}disk full\n`);
  skill = await testSkill(new URL("..", import.meta.url), { workingDirectory });
});

after(async () => {
  await skill.close();
  await rm(workingDirectory, { recursive: true });
});

test("finds a line, and reports progress on the way", async () => {
  const seen = [];
  const subscription = skill.session.on("tool.execution_progress", ({ data }) => seen.push(data.progressMessage));
  const { textResultForLlm } = await skill.call("search_lines", { path: "big.log", text: "disk" });
  subscription[Symbol.dispose]();
  assert.equal(textResultForLlm, "200001: disk full");
  assert.ok(seen.length > 0);
});

test("stays inside the working directory", async () => {
  assert.equal((await skill.call("search_lines", { path: "../../etc/hosts", text: "a" })).resultType, "failure");
});

test("can be cancelled", async () => {
  const abort = new AbortController();
  const call = skill.session.callTool("search_lines", { path: "big.log", text: "nothing" }, { signal: abort.signal });
  abort.abort();
  assert.notEqual((await call).resultType, "success");
});

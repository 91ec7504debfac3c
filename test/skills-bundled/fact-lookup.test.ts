import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTestHost } from "skillhost/testing";
import { afterEach, beforeEach, expect, test } from "vitest";

const skill = fileURLToPath(new URL("../../skills/fact-lookup/", import.meta.url));
const facts = JSON.parse(readFileSync(join(skill, "tools/_facts.json"), "utf8")) as Record<string, string>;
let root: string;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "fact-lookup-")));
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

test("lookup_fact returns the fact of a known topic and logs the topic", async () => {
  await using server = await createTestHost({ skillDirectories: [skill], watch: false });
  for (const topic of ["Laravel", "laravel", "  PHP "]) {
    const result = await server.call("lookup_fact", { topic });
    expect(result).toMatchObject({ resultType: "success", sessionLog: `lookup_fact: served ${topic.trim()}` });
    expect(Object.values(facts)).toContain(result.textResultForLlm);
  }
});

test("lookup_fact fails for an unknown topic and names it", async () => {
  await using server = await createTestHost({ skillDirectories: [skill], watch: false });
  expect(await server.call("lookup_fact", { topic: "Cobol" })).toMatchObject({
    resultType: "failure",
    textResultForLlm: "No fact stored for Cobol.",
    sessionLog: "lookup_fact: missing topic Cobol",
  });
  for (const topic of ["__proto__", "constructor"]) expect((await server.call("lookup_fact", { topic })).resultType).toBe("failure");
});

test("lookup_fact rejects an empty topic by its Zod schema", async () => {
  await using server = await createTestHost({ skillDirectories: [skill], watch: false });
  const result = await server.call("lookup_fact", { topic: "   " });
  expect(result.resultType).toBe("failure");
  expect(result.textResultForLlm).toContain("topic");
  expect(result.sessionLog).toBeUndefined();
});

test("lookup_fact uses new facts as soon as the JSON file is saved", async () => {
  const copy = join(root, "fact-lookup");
  cpSync(skill, copy, { recursive: true });
  // The copy has no node_modules above it; a user's skill has, and so must this one.
  const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));
  symlinkSync(modules, join(root, "node_modules"));
  await using server = await createTestHost({ skillDirectories: [copy], workingDirectory: root });
  expect((await server.call("lookup_fact", { topic: "Zig" })).resultType).toBe("failure");
  await server.change(() => writeFileSync(join(copy, "tools/_facts.json"), JSON.stringify({ Zig: "Zig is a language." })));
  expect(await server.call("lookup_fact", { topic: "Zig" })).toMatchObject({
    resultType: "success",
    textResultForLlm: "Zig is a language.",
  });
  expect(server.session.listTools().find((tool) => tool.name === "lookup_fact")?.description).toContain("Zig");
});

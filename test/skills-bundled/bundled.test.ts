import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv, type ValidateFunction } from "ajv";
import { createTestHost } from "skillhost/testing";
import { expect, test } from "vitest";
import { lintSkillDocument } from "../../src/formats/skills/lint-skill-document.ts";

const root = fileURLToPath(new URL("../../skills/", import.meta.url));
const names = readdirSync(root).sort();
const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const paths = files.map((entry) => join(entry.parentPath, entry.name));
const read = (path: string): string => readFileSync(path, "utf8");
const readJson = (path: string): Record<string, unknown> => JSON.parse(read(path)) as Record<string, unknown>;

test("all bundled skills load without diagnostics", async () => {
  await using server = await createTestHost({ skillDirectories: [root], watch: false });
  expect(server.host.diagnostics).toEqual([]);
  expect(server.host.skills.map((skill) => skill.name).sort()).toEqual(names);
  const tools = server.session.listTools().map((tool) => tool.name);
  const expected = ["lint", "get_changed_files", "memory", "lookup_fact", "count_lines", "service_status"];
  expect(tools).toEqual(expect.arrayContaining(expected));
});

test("every parameter of every bundled tool has a description, and no tool accepts unknown parameters", async () => {
  await using server = await createTestHost({ skillDirectories: [root], watch: false });
  for (const tool of server.session.listTools()) {
    const parameters = tool.parameters as { properties?: Record<string, { description?: string }>; additionalProperties?: unknown };
    expect(tool.description?.length, tool.name).toBeGreaterThan(60);
    expect(parameters.additionalProperties ?? false, tool.name).toBe(false);
    for (const [name, schema] of Object.entries(parameters.properties ?? {}))
      expect(schema.description?.length ?? 0, `${tool.name}.${name}`).toBeGreaterThan(20);
  }
});

test("every SKILL.md passes the strict rules of the Agent Skills specification", () => {
  const documents = paths.filter((path) => basename(path) === "SKILL.md");
  expect(documents.length).toBeGreaterThan(1);
  for (const file of documents) expect(lintSkillDocument(read(file), { file, directoryName: basename(dirname(file)) }), file).toEqual([]);
});

test.each([
  ["skill.json", "skill.schema.json", (path: string) => basename(path) === "skill.json"],
  ["tools/*.json", "tool.schema.json", (path: string) => basename(dirname(path)) === "tools" && /^[^_].*\.json$/.test(basename(path))],
])("every %s is valid according to %s, and its $schema points to that file", (_name, schemaName, isMeant) => {
  const schemaPath = join(root, "..", "schemas", schemaName);
  const ajv = new Ajv({
    strict: false,
    schemas: ["skill.schema.json", "tool.schema.json"].map((name) => readJson(join(dirname(schemaPath), name))),
  });
  const validate = ajv.getSchema(`skillhost/${schemaName}`) as ValidateFunction;
  const found = paths.filter(isMeant);
  expect(found.length).toBeGreaterThan(1);
  for (const path of found) {
    const document = readJson(path);
    expect(validate(document), `${path}: ${JSON.stringify(validate.errors)}`).toBe(true);
    expect(join(dirname(path), String(document["$schema"]))).toBe(schemaPath);
  }
});

test("the manifest, SKILL.md and folder of a bundled skill have the same name and description", () => {
  for (const name of names) {
    const manifest = paths.find((path) => path === join(root, name, "skill.json"));
    const document = paths.find((path) => path === join(root, name, "SKILL.md"));
    expect(manifest ?? document, name).toBeDefined();
    if (manifest) expect(readJson(manifest)["name"]).toBe(name);
    if (manifest && document) expect(read(document)).toContain(`description: ${String(readJson(manifest)["description"])}\n`);
  }
});

test("the modules of bundled skills import only what any skill can import", () => {
  const modules = paths.filter((path) => /^\.m?[jt]s$/.test(extname(path)));
  expect(modules.length).toBeGreaterThan(10);
  for (const path of modules) {
    const imported = [...read(path).matchAll(/^(?:import|export)[^"]*from "([^"]+)"|^import "([^"]+)"/gm)].map(
      (match) => match[1] ?? match[2] ?? "",
    );
    for (const specifier of imported) {
      const isOwn =
        specifier.startsWith(".") && join(dirname(path), specifier).startsWith(join(root, path.slice(root.length).split(/[\\/]/)[0] ?? ""));
      expect(isOwn || /^node:|^(skillhost|zod|oxc-parser)$/.test(specifier), `${path} imports ${specifier}`).toBe(true);
    }
  }
});

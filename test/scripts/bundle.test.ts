import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import * as nodeModule from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPackage } from "../built-package.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const place = realpathSync.native(mkdtempSync(join(tmpdir(), "bundle ü with spaces ")));
const shipped = join(place, "node_modules/skillhost");
const dist = join(shipped, "dist");
const env = { ...process.env, SKILLHOST_HOME: join(place, "home") };

interface Manifest {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
}
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;

beforeAll(async () => {
  const { folder } = buildPackage();
  mkdirSync(shipped, { recursive: true });
  for (const file of ["package.json", "schemas", "skills"]) cpSync(join(root, file), join(shipped, file), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(shipped, "node_modules"), "junction");
  await run(process.execPath, [join(root, "scripts/bundle.mjs"), "--compiled", join(folder, "dist"), "--dist", dist]);
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** The files that a file imports, directly or not, before its own code runs. */
function staticImports(file: string, found: Set<string> = new Set()): ReadonlySet<string> {
  for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(/^(?:import|export)\b[^"']*?from *"([^"]+)"|^import *"([^"]+)"/gm)) {
    const target = specifier.startsWith(".") ? resolve(dirname(file), specifier) : specifier;
    if (found.has(target)) continue;
    found.add(target);
    if (specifier.startsWith(".")) staticImports(target, found);
  }
  return found;
}

function writeSkill(name: string, module: string): string {
  const project = mkdtempSync(join(place, "project-"));
  mkdirSync(join(project, "skills", name, "tools"), { recursive: true });
  writeFileSync(
    join(project, "skills", name, "SKILL.md"),
    `---\nname: ${name}\ndescription: Is run by the package as it is shipped.\n---\nUse it.\n`,
  );
  writeFileSync(join(project, "skills", name, "tools", `${name}.ts`), module);
  return project;
}

async function call(project: string, tool: string): Promise<string> {
  const { stdout } = await run(process.execPath, [join(dist, "cli/bin.js"), "--trust", "call", tool, "{}", "--yes", "--json"], {
    cwd: project,
    env,
  }).catch((failed: { readonly stdout: string }) => failed);
  return stdout;
}

test("each export and the program are among the files, with their types", () => {
  const exported = Object.values(manifest.exports).flatMap((target) => (typeof target === "string" ? target : Object.values(target)));
  const files = [...exported, ...Object.values(manifest.bin)];
  expect(files.length).toBeGreaterThan(15);
  expect(files.filter((file) => !existsSync(join(shipped, file)))).toEqual([]);
});

test("importing the package loads neither the host nor what only a host needs", () => {
  const imported = [...staticImports(join(dist, "index.js"))];
  expect(imported.length).toBeGreaterThan(1);
  expect(imported.filter((file) => /host\.js$|command-line|^(?!node:)[a-z@]|node:https?$/.test(file))).toEqual([]);
});

test("the exports have the same names as in the sources", async () => {
  for (const entry of ["index", "define", "testing"]) {
    const source: object = await import(pathToFileURL(join(root, `src/${entry}.ts`)).href);
    const { stdout } = await run(process.execPath, [
      "--input-type=module",
      "-e",
      `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(pathToFileURL(join(dist, `${entry}.js`)).href)}))))`,
    ]);
    expect((JSON.parse(stdout) as string[]).sort()).toEqual(Object.keys(source).sort());
  }
});

test("the declarations name no package that is not installed with this one, and are complete", async () => {
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".d.ts"));
  const imported = files.flatMap((file) =>
    [...readFileSync(join(dist, file), "utf8").matchAll(/(?:from|import\()\s*["']([@a-z][^"':]*)["']/g)].map(([, name]) => ({
      file,
      name: name!,
    })),
  );
  expect(imported.length).toBeGreaterThan(3);
  // A program that imports an adapter, or a plugin for other programs, has the package that it is for.
  const installed = (file: string): object => ({
    skillhost: "",
    ...manifest.dependencies,
    ...(/^(?:adapters|plugins)\b/.test(file) && manifest.peerDependencies),
  });
  const isMissing = ({ file, name }: (typeof imported)[number]): boolean =>
    !Object.hasOwn(installed(file), name.split("/", name.startsWith("@") ? 2 : 1).join("/"));
  expect(imported.filter(isMissing)).toEqual([]);

  // Those of optional packages are compiled with the samples of docs/adapters.md.
  const isOptional = (name: string): boolean => /^\.\/(?:adapters\/(?:ai-sdk|langchain)|plugins\/nats)$/.test(name);
  const names = Object.keys(manifest.exports).filter((name) => !name.endsWith(".json") && !isOptional(name));
  const imports = names.map((name, index) => `import * as all${index} from "skillhost${name.slice(1)}";`);
  const uses = `const closed: (host: import("skillhost").Host, session: import("skillhost").Session) => Promise<void> = (host) => host.close();
new all0.Lifetime(() => new Error("It is over."));
new all0.HostError("CODE", "Message.");`;
  const all = `export default [${names.map((_, index) => `all${index}`).join()}, closed];`;
  writeFileSync(join(place, "consumer.mts"), [...imports, uses, all].join("\n"));
  const strict = [
    "--strict",
    "--noEmit",
    "--skipLibCheck",
    "false",
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "--lib",
    "es2024,esnext.disposable",
  ];
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types"), "--ignoreConfig", "--preserveSymlinks"];
  const compiling = run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...strict, ...types, "consumer.mts"], {
    cwd: place,
  });
  expect(await compiling.catch(({ stdout }: { readonly stdout: string }) => ({ stdout }))).toMatchObject({ stdout: "" });
});

test("a bundle of a module that only defines a tool has a few kilobytes of this package", async () => {
  const entry = join(place, "entry.mjs");
  writeFileSync(entry, 'import { defineTool } from "skillhost"; export default defineTool("greet", { handler: () => "Hello" });');
  const building = await rolldown({ input: entry, platform: "node", external: /^node:/ });
  const { output } = await building.generate({ format: "esm" });
  await building.close();
  const chunks = new Map(output.flatMap((file) => (file.type === "chunk" ? [[file.fileName, file] as const] : [])));
  const loaded = new Set([output[0].fileName]);
  for (const name of loaded) for (const imported of chunks.get(name)?.imports ?? []) loaded.add(imported);
  const text = [...loaded].map((name) => chunks.get(name)?.code ?? "").join("");
  expect(text).toContain("skillhost.tool");
  expect(text.length).toBeLessThan(8_000);
});

test("skills get the same functions by each name of the package, and stack traces name their lines", async () => {
  const project = writeSkill(
    "same",
    `import { defineTool } from "skillhost/define";
import * as host from "skillhost";
import { testSkill } from "skillhost/testing";

interface Unused { readonly lines: number }

export default defineTool("same", {
  description: "Compares.",
  handler: () => [host.defineTool === defineTool, typeof testSkill].join(),
});
export const failing = defineTool("failing", { description: "Throws.", handler: () => fail() });
function fail(): never {
  throw new Error("It failed.");
}
`,
  );
  expect(JSON.parse(await call(project, "same"))).toMatchObject({ ok: true, data: { result: { textResultForLlm: "true,function" } } });
  const { data } = JSON.parse(await call(project, "failing")) as { data: { result: { sessionLog: string } } };
  expect(data.result.sessionLog).toMatch(/at fail \(.*same\.ts:13:9\)/);
});

test("plugins find the files beside them, and the package itself", async () => {
  const program = `
    import { createHost } from "skillhost";
    const names = ["language-server", "library-docs", "python-tools", "workspace-tools"];
    const host = await createHost({ skillDirectories: [], watch: false, plugins: names.map((name) => "skillhost/plugins/" + name) });
    const session = await host.createSession({ persist: false });
    console.log(JSON.stringify({ plugins: host.plugins.map(({ state }) => state), tools: session.listTools().length }));
    await host.close();`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: place, env });
  const { plugins, tools } = JSON.parse(stdout) as { plugins: string[]; tools: number };
  expect(plugins).toEqual(["active", "active", "active", "active"]);
  expect(tools).toBeGreaterThan(5);
  for (const asset of ["python-tools/worker/skillhost/_inspect.py", "library-docs/docs"])
    expect(existsSync(join(dist, "plugins", asset))).toBe(true);
});

test("compiled code is kept in the user's cache folder where Node.js can do that; a folder that cannot be used changes nothing else", async () => {
  const version = async (cache: string, more: NodeJS.ProcessEnv = {}): Promise<string> => {
    const options = { env: { ...env, SKILLHOST_CACHE: "", XDG_CACHE_HOME: cache, ...more } };
    return (await run(process.execPath, [join(dist, "cli/bin.js"), "--version"], options)).stdout.trim();
  };
  const isKept = (cache: string): boolean => existsSync(join(cache, "skillhost/compiled"));
  const [usual, readOnly, off, disabled] = ["usual", "read-only", "off", "disabled"].map((name) => join(place, `cache-${name}`));
  mkdirSync(readOnly!);
  chmodSync(readOnly!, 0o500);
  const file = join(place, "cache-file");
  writeFileSync(file, "");
  const answers = [
    await version(usual!),
    await version(usual!),
    await version(readOnly!),
    await version(file),
    await version(off!, { SKILLHOST_CACHE: "off" }),
    await version(disabled!, { NODE_DISABLE_COMPILE_CACHE: "1" }),
  ];
  expect(new Set(answers)).toEqual(new Set([manifest.version]));
  expect([usual!, off!, disabled!].map(isKept)).toEqual(["enableCompileCache" in nodeModule, false, false]);
});

/** The packages in files of their own, and the native libraries, that a run loads. */
async function loadedBy(project: string, ...args: string[]): Promise<{ readonly loaded: readonly string[]; readonly stdout: string }> {
  const hook = join(place, "loaded.cjs");
  const report = join(place, "loaded.json");
  const kept = "Object.keys(require.cache).filter((file) => /\\.(cjs|node)$/.test(file) && file !== __filename)";
  writeFileSync(hook, `process.on("exit", () => require("node:fs").writeFileSync(${JSON.stringify(report)}, JSON.stringify(${kept})));`);
  const command = ["--require", hook, join(dist, "cli/bin.js"), "--trust", ...args];
  const { stdout } = await run(process.execPath, command, { cwd: project, env });
  const loaded = JSON.parse(readFileSync(report, "utf8")) as string[];
  return { stdout, loaded: loaded.map((file) => /^[\w-]*/.exec(basename(file))![0]).sort() };
}

test("a package that is part of the build is loaded by the first call of its functions", async () => {
  const project = writeSkill(
    "plain",
    'import { defineTool } from "skillhost";\nexport default defineTool("plain", { handler: () => 1 });\n',
  );
  const skill = join(project, "skills/plain");
  expect((await loadedBy(project, "list")).loaded).toEqual(["transform"]);

  writeFileSync(join(skill, "SKILL.md"), "---\nname: &name plain\ndescription: >-\n  Is folded\n  twice.\nalias: *name\n---\nUse it.\n");
  writeFileSync(join(skill, "skill.json"), '{ "name": "plain", "engines": { "skillhost": ">=0.0.1" } }');
  const parameters = { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } };
  const tool = `export const SCHEMA = { name: "plain", parameters: ${JSON.stringify(parameters)} };\nexport const execute = () => "Done.";\n`;
  writeFileSync(join(skill, "tools/plain.ts"), tool);
  const listed = await loadedBy(project, "list", "--skills", "skills/*");
  expect(listed.loaded).toEqual(["semver", "tinyglobby", "transform", "yaml"]);
  expect(listed.stdout).toContain("Is folded twice.");
  const called = await loadedBy(project, "call", "plain", '{"text":"aaa"}', "--yes");
  expect(called.loaded).toEqual(["ajv-formats", "re2js", "semver", "transform", "yaml"]);
  expect(called.stdout).toBe("Done.\n");
});

test("what the package never calls of its libraries is not part of it", () => {
  const files = readdirSync(join(dist, "chunks")).filter((file) => /\.c?js$/.test(file));
  const holding = (text: string): readonly string[] =>
    files.filter((file) => readFileSync(join(dist, "chunks", file), "utf8").includes(text));
  // Ajv's validator, and npm's runner of install scripts: what both would bring, and what is there instead.
  expect([holding("must NOT have additional properties"), holding("npm_lifecycle_script")]).toEqual([[], []]);
  expect(holding("@npmcli/run-script is not part of skillhost.")).toEqual(["npm-libraries.cjs"]);
});

test("what shows whether a file is a script is loaded for files that may be one", async () => {
  const project = writeSkill("script", "console.log('A script for people.');\n");
  const { loaded, stdout } = await loadedBy(project, "list", "--json");
  expect(loaded.filter((name) => name === "parser")).toHaveLength(1);
  expect(stdout).toContain("TOOL_FILE_SCRIPT");
});

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { errorMessage } from "../base/errors.ts";
import { packageRoot } from "../base/package-root.ts";
import { isInside, isReallyInside } from "../io/confine-path.ts";
import { isSkillFolder } from "../skills/load/skill-path.ts";
import { resolveRoot } from "../skills/store/skill-roots.ts";
import { nearestToolName } from "../tools/tool.ts";
import { isTooWide, trustFileIn, trustFolderIn } from "../trust/trust-file.ts";
import { skillhostHome } from "../trust/trust-policy.ts";
import { CliError, usageError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";
import { didYouMean } from "./did-you-mean.ts";
import { skillDirectories } from "./open-host.ts";
import { withheldCode } from "./project-consent.ts";

/** The files to create, by path relative to the skill, with forward slashes. */
type ScaffoldFiles = Readonly<Record<string, string>>;

/** A working skill with one tool and its test. */
export function skillFiles(name: string, schema: string | undefined): ScaffoldFiles {
  const tool = nearestToolName(name.replaceAll("-", "_"));
  const manifest = { ...(schema && { $schema: schema }), name, version: "0.1.0" };
  return {
    "SKILL.md": skillDocument(name, tool),
    "skill.json": `${JSON.stringify(manifest, null, 2)}\n`,
    ...toolFiles(tool),
  };
}

export function toolFiles(tool: string): ScaffoldFiles {
  return { [`tools/${tool}.ts`]: toolModule(tool), [`test/${tool}.test.mjs`]: toolTest(tool) };
}

function skillDocument(name: string, tool: string): string {
  return `---
name: ${name}
description: Greets people by name. Use it when a person introduces themselves.
---

# ${titleOf(name)}

When a person introduces themselves, call \`${tool}\` with their name and answer with what it returns.
`;
}

function toolModule(tool: string): string {
  return `import { defineTool } from "skillhost";

interface Arguments {
  readonly name: string;
}

export default defineTool<Arguments>(${JSON.stringify(tool)}, {
  description: "Returns a greeting for a person. Use it when a person introduces themselves.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, description: "The person's name, as they spelled it." },
    },
    required: ["name"],
  },
  handler: ({ name }) => \`Hello, \${name}!\`,
});
`;
}

function toolTest(tool: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("greets a person by name", async () => {
  const skill = await testSkill(folder);
  try {
    const result = await skill.call(${JSON.stringify(tool)}, { name: "Ada" });
    assert.equal(result.textResultForLlm, "Hello, Ada!");
  } finally {
    await skill.close();
  }
});

test("refuses a call without a name", async () => {
  const skill = await testSkill(folder);
  try {
    const result = await skill.call(${JSON.stringify(tool)}, {});
    assert.equal(result.resultType, "failure");
    assert.match(result.textResultForLlm, /name/);
  } finally {
    await skill.close();
  }
});
`;
}

function titleOf(name: string): string {
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A working plugin with one tool, a configuration and its test. */
export function pluginFiles(name: string): ScaffoldFiles {
  const tool = nearestToolName(name.replaceAll("-", "_"));
  return { "plugin.ts": pluginModule(name, tool), "test/plugin.test.mjs": pluginTest(tool) };
}

function pluginModule(name: string, tool: string): string {
  return `import { definePlugin, defineTool } from "skillhost";

interface Config {
  /** The word that greets. */
  readonly greeting: string;
}

export default definePlugin<Config>({
  name: ${JSON.stringify(name)},
  version: "0.1.0",
  configSchema: {
    type: "object",
    properties: { greeting: { type: "string", minLength: 1, default: "Hello" } },
    additionalProperties: false,
  },
  activate(api) {
    api.addTools(
      defineTool<{ name: string }>(${JSON.stringify(tool)}, {
        description: "Returns a greeting for a person. Use it when a person introduces themselves.",
        parameters: {
          type: "object",
          properties: { name: { type: "string", minLength: 1, description: "The person's name, as they spelled it." } },
          required: ["name"],
        },
        handler: ({ name }) => \`\${api.config.greeting}, \${name}!\`,
      }),
    );
    // Close here what you open: api.onDispose(() => connection.close());
  },
});
`;
}

function pluginTest(tool: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createTestHost } from "skillhost/testing";

const use = fileURLToPath(new URL("..", import.meta.url));

async function open(config) {
  return createTestHost({ plugins: [{ use, config }], skillDirectories: [], watch: false });
}

test("greets a person by name", async () => {
  const host = await open();
  try {
    assert.equal((await host.call(${JSON.stringify(tool)}, { name: "Ada" })).textResultForLlm, "Hello, Ada!");
  } finally {
    await host.close();
  }
});

test("uses the configured greeting", async () => {
  const host = await open({ greeting: "Good day" });
  try {
    assert.equal((await host.call(${JSON.stringify(tool)}, { name: "Ada" })).textResultForLlm, "Good day, Ada!");
  } finally {
    await host.close();
  }
});

test("does not start with an invalid configuration", async () => {
  const { host, close } = await open({ greeting: 1 });
  try {
    assert.deepEqual(host.plugins.map(({ state }) => state), ["failed"]);
    assert.match(host.diagnostics[0].message, /greeting/);
  } finally {
    await close();
  }
});
`;
}

/** Writes files below a folder and returns their paths. If one already exists, nothing is written. */
export function writeScaffold(folder: string, files: ScaffoldFiles): readonly string[] {
  const planned = Object.entries(files).map(([path, text]) => ({ file: join(folder, path), text }));
  const taken = planned.find(({ file }) => existsSync(file));
  if (taken)
    throw new CliError(
      "FILE_EXISTS",
      `${taken.file} already exists, so nothing was written. Choose another name, or move the file away.`,
      1,
    );
  for (const { file, text } of planned) write(file, text);
  return planned.map(({ file }) => file);
}

/**
 * Writes the files of a new folder and trusts it: the whole project if it contains no other code that would run, otherwise only the new
 * folder.
 */
export async function writeTrusted(context: CommandContext, folder: string, files: ScaffoldFiles): Promise<readonly string[]> {
  const { consent } = context;
  const isEmpty = withheldCode(context) === undefined && !isTooWide(consent.folder) && isInside(consent.folder, folder);
  const written = writeScaffold(folder, files);
  const made = isEmpty ? consent.folder : folder;
  if (!consent.trust.allows(made)) await trustFolderIn(trustFileIn(skillhostHome()), made);
  return written;
}

/**
 * Refuses to write outside of the project through a link or a configuration.
 * @throws CliError `PATH_OUTSIDE`
 */
export function assertOwnPlace({ consent, options, out }: CommandContext, folder: string): void {
  if (options.skills !== undefined || isReallyInside(consent.folder, folder)) return;
  const message = `${out.path(folder)} points out of the project ${consent.folder}, so nothing was written. If this is intended, pass the folder with --skills.`;
  throw new CliError("PATH_OUTSIDE", message, 1);
}

function write(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    // Fails too if the file was created since the check.
    writeFileSync(file, text, { flag: "wx" });
  } catch (error) {
    throw new CliError(
      "FILE_NOT_WRITTEN",
      `${file} could not be written (${errorMessage(error)}). Check the permissions of its folder.`,
      1,
    );
  }
}

/** The path from a skill to the schema of skill.json, if this package is installed above it. */
export function schemaPath(folder: string): string | undefined {
  const installed = installedAbove(folder);
  return (
    installed &&
    relative(folder, join(installed, "schemas", "skill.schema.json"))
      .split(sep)
      .join("/")
  );
}

/** How to run a test that imports `skillhost/testing`, which imports do not find in a global installation. */
export function testHint({ out }: CommandContext, test: string): string {
  const command = `node --test ${out.path(test)}`;
  return installedAbove(dirname(test)) === undefined
    ? `Run its test: npm install --save-dev skillhost, then ${command}`
    : `Run its test: ${command}`;
}

function installedAbove(folder: string): string | undefined {
  for (let at = folder; dirname(at) !== at; at = dirname(at)) {
    const installed = join(at, "node_modules", "skillhost");
    if (existsSync(join(installed, "schemas", "skill.schema.json"))) return installed;
  }
  return undefined;
}

const prefix = "skillhost:";
const templates = join(packageRoot, "skills");

export function isBundledName(name: string): boolean {
  return name.startsWith(prefix);
}

/** Copies bundled skills into the project or the user's own folder, to be used and changed there. */
export async function addBundled(
  context: CommandContext,
  names: readonly string[],
  { user = false }: { readonly user?: boolean },
): Promise<number> {
  const { io, out } = context;
  if (!names.every(isBundledName))
    throw usageError(`Bundled skills (${prefix}<name>) and packages cannot be added by the same command. Run the command once for each.`);
  const root = user ? join(skillhostHome(), "skills") : resolveRoot(skillDirectories(context)[0]!, io.cwd);
  const chosen = names.map((name) => findTemplate(name.slice(prefix.length)));
  const folders = chosen.map((name) => join(root, name));
  const taken = folders.find(existsSync);
  if (taken !== undefined) throw new CliError("FILE_EXISTS", `${taken} already exists, so nothing was written. Move it away first.`, 1);
  const files: string[] = [];
  for (const [index, folder] of folders.entries()) {
    if (!user) assertOwnPlace(context, folder);
    files.push(...(await writeTrusted(context, folder, filesOf(join(templates, chosen[index]!)))));
  }
  if (out.isJson) out.envelope({ ok: true, data: { changed: true, folders, files }, diagnostics: [] });
  else for (const folder of folders) out.line(`Added ${out.path(folder)}.`);
  return 0;
}

function findTemplate(name: string): string {
  const known = readdirSync(templates).filter((each) => isSkillFolder(join(templates, each)));
  if (known.includes(name)) return name;
  throw new CliError(
    "SKILL_UNKNOWN",
    `skillhost has no bundled skill "${name}".${didYouMean(name, known)} The bundled skills are ${known.join(", ")}.`,
    1,
  );
}

function filesOf(folder: string): Readonly<Record<string, string>> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !/(^|[\\/])node_modules[\\/]/.test(path));
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { decodeText } from "../../formats/text/decode-text.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { isTooWide, trustFileIn, trustFolderIn } from "../../trust/trust-file.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { loadConfig } from "../config.ts";
import { asker } from "../confirm.ts";
import { mcpClients } from "../connect/mcp-clients.ts";
import { didYouMean } from "../did-you-mean.ts";
import { readConsent } from "../project-consent.ts";
import { extendManifest, packageManifest, projectFiles, projectSkillSchema } from "../scaffold/project-template.ts";
import { type SkillKind, skillFiles, skillKinds } from "../scaffold/skill-template.ts";
import { type ScaffoldFiles, writeScaffold, writeTrusted } from "../scaffold/write-scaffold.ts";
import { visibleLine } from "../terminal-style.ts";
import { writeConnection } from "./connect.ts";
import { checkSkillName } from "./new.ts";

export interface InitOptions {
  readonly name?: string;
  readonly skill?: string;
  readonly kind?: SkillKind;
  /** The clients to connect. */
  readonly connect?: readonly string[];
  readonly yes?: boolean;
}

/**
 * Makes a folder a project with one skill. What exists stays as it is; only a package.json gets what it lacks. Writes nothing when
 * something is wrong.
 */
export async function init(context: CommandContext, folder: string | undefined, options: InitOptions): Promise<number> {
  const { io, out } = context;
  const project = resolve(io.cwd, folder ?? ".");
  const isNew = isEmptyOrAbsent(project);
  const manifestFile = join(project, "package.json");
  const manifest = readManifest(manifestFile);
  const { skill, kind, clients } = await choose(context, options);
  const skillFolder = join(project, "skills", skill);
  if (existsSync(skillFolder)) {
    const message = `${skillFolder} already exists, so nothing was written. Choose another name with --skill.`;
    throw new CliError("FILE_EXISTS", message, 1);
  }
  const name = options.name ?? packageName(basename(project));
  const all = projectFiles(kind);
  const kept = Object.keys(all).filter((file) => existsSync(join(project, file)));
  const extended = manifest && extendManifest(manifest.text, manifest.value, kind);
  if (manifest !== undefined && extended === undefined) kept.unshift("package.json");
  const files = {
    ...(manifest === undefined && { "package.json": packageManifest(name, kind) }),
    ...Object.fromEntries(Object.entries(all).filter(([file]) => !kept.includes(file))),
    ...prefixed(`skills/${skill}`, skillFiles(skill, { kind, schema: projectSkillSchema })),
  };
  const written = isNew ? await writeNewProject(project, skillFolder, files) : await addToProject(context, project, skillFolder, files);
  if (extended !== undefined) await replaceManifest(manifestFile, extended);
  const changed = extended === undefined ? [] : [manifestFile];
  const connected = await connectClients(context, project, clients);
  const next = nextSteps(context, project, skillFolder, kind, kept);
  if (out.isJson) {
    out.envelope({
      ok: true,
      data: { folder: project, files: written, changed: [...changed, ...connected], kept: kept.map((file) => join(project, file)), next },
      diagnostics: [],
    });
    return 0;
  }
  for (const file of written) out.line(out.path(file));
  for (const file of changed) out.line(`${out.path(file)} (changed: scripts and devDependencies)`);
  for (const file of connected) out.line(out.path(file));
  for (const file of kept) out.note(`${out.path(join(project, file))} exists and was kept.`);
  for (const step of next) out.note(step);
  return 0;
}

/** Nothing in a new folder can be the code of another author, so all of it is trusted. */
async function writeNewProject(project: string, skillFolder: string, files: ScaffoldFiles): Promise<readonly string[]> {
  const written = writeScaffold(project, files);
  await trustFolderIn(trustFileIn(skillhostHome()), isTooWide(project) ? skillFolder : project);
  return written;
}

/** In a folder that has files already, only the new skill is trusted unless the project has no code that would run. */
async function addToProject(
  context: CommandContext,
  project: string,
  skillFolder: string,
  files: ScaffoldFiles,
): Promise<readonly string[]> {
  // What else would run is known only for the folder in which the command runs.
  if (project === resolve(context.io.cwd)) return writeTrusted(context, project, files, skillFolder);
  const written = writeScaffold(project, files);
  await trustFolderIn(trustFileIn(skillhostHome()), skillFolder);
  return written;
}

/** The files of the clients that were changed. What is written is shown by the question, or named by an option. */
async function connectClients(context: CommandContext, project: string, clients: readonly string[]): Promise<readonly string[]> {
  if (clients.length === 0) return [];
  const io = { ...context.io, cwd: project };
  const consent = { ...readConsent(io, context.options), folder: project };
  const inside: CommandContext = { ...context, io, consent, config: loadConfig(undefined, project) };
  const files: string[] = [];
  for (const client of clients) files.push(...(await writeConnection(inside, client)));
  return files;
}

interface Choices {
  readonly skill: string;
  readonly kind: SkillKind;
  readonly clients: readonly string[];
}

const kindsInWords: Readonly<Record<SkillKind, string>> = {
  typescript: "a tool in TypeScript",
  json: "a tool in JSON that runs a program",
  python: "a tool in Python",
  instructions: "instructions only",
};

/** What the options do not say is asked on a terminal; elsewhere, and with `--yes`, defaults are used. */
async function choose(context: CommandContext, { skill, kind, connect = [], yes = false }: InitOptions): Promise<Choices> {
  checkClients(connect);
  if (skill !== undefined) checkSkillName(skill);
  const ask = yes || context.out.isJson ? undefined : asker(context);
  if (ask === undefined) return { skill: skill ?? "hello", kind: kind ?? "typescript", clients: connect };
  const name = skill ?? ((await ask("Name of the first skill [hello]: ")).trim() || "hello");
  checkSkillName(name);
  const chosen = kind ?? readKind(await ask(kindQuestion));
  const clients = connect.length > 0 ? connect : (await ask(clientQuestion)).split(/[\s,]+/).filter(Boolean);
  checkClients(clients);
  return { skill: name, kind: chosen, clients };
}

const clientQuestion = `Connect MCP clients (${mcpClients.map(({ name }) => name).join(", ")}) [none]: `;

function checkClients(clients: readonly string[]): void {
  const known = mcpClients.map(({ name }) => name);
  const unknown = clients.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw usageError(
    `"${visibleLine(unknown)}" is not one of the clients ${known.join(", ")}.${didYouMean(unknown, known)} Nothing was written.`,
  );
}

const kindQuestion = `${["What is it?", ...skillKinds.map((kind, index) => `  ${index + 1}. ${kind}: ${kindsInWords[kind]}`)].join("\n")}\n[1]: `;

function readKind(given: string): SkillKind {
  const text = given.trim().toLowerCase();
  const kind = text === "" ? skillKinds[0] : (skillKinds[Number(text) - 1] ?? skillKinds.find((each) => each === text));
  if (kind !== undefined) return kind;
  throw usageError(`"${visibleLine(given.trim())}" is not one of ${skillKinds.join(", ")}. Nothing was written.`);
}

interface Manifest {
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The package.json of the folder. It is changed only if it is a JSON object, because what npm cannot read must not be lost. */
function readManifest(file: string): Manifest | undefined {
  if (!existsSync(file)) return undefined;
  const read = readTextFile(file, maxJsonBytes);
  if (!read.ok) throw new CliError("PACKAGE_JSON", `${read.diagnostic.message} Nothing was written.`, 1);
  const { text } = decodeText(read.bytes, file);
  const value = parseOrFail(text, file);
  if (isRecord(value)) return { text, value };
  throw new CliError("PACKAGE_JSON", `${file} is not a JSON object, so nothing was written. Fix it, then run again.`, 1);
}

function parseOrFail(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `${file} is not valid JSON (${errorMessage(error)}), so nothing was written. Fix it, then run again.`;
    throw new CliError("PACKAGE_JSON", message, 1);
  }
}

async function replaceManifest(file: string, text: string): Promise<void> {
  try {
    await writeFileAtomic(file, text);
  } catch (error) {
    const message = `${file} could not be changed (${errorMessage(error)}). The other files were written. Run "npm install --save-dev skillhost".`;
    throw new CliError("FILE_NOT_WRITTEN", message, 1);
  }
}

/** A valid package name near the folder's. */
function packageName(folder: string): string {
  const name = folder
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+|[._-]+$/g, "")
    .slice(0, 200);
  // Names that npm refuses, and the one that would depend on itself.
  return name === "" || name === "node_modules" || name === "favicon.ico" ? "my-skills" : name === "skillhost" ? "my-skillhost" : name;
}

function isEmptyOrAbsent(folder: string): boolean {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return true;
  if (!stats.isDirectory()) throw new CliError("NOT_A_FOLDER", `${folder} is not a folder. Name another one.`, 1);
  return readdirSync(folder).every((entry) => entry === ".git");
}

function prefixed(folder: string, files: ScaffoldFiles): ScaffoldFiles {
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text]));
}

function nextSteps(
  { io, out }: CommandContext,
  project: string,
  skillFolder: string,
  kind: SkillKind,
  kept: readonly string[],
): readonly string[] {
  const isHere = project === resolve(io.cwd);
  const python = kind === "python" && kept.includes("skillhost.json");
  return [
    ...(python ? ['Add "skillhost/plugins/python-tools" to "plugins" in skillhost.json.'] : []),
    `Next: ${isHere ? "" : `cd ${out.path(project)} && `}npm install`,
    "Then: npm test              runs the test of the skill",
    `      npx skillhost dev     loads ${basename(skillFolder)}, and each save at once`,
    "      npx skillhost connect <client>     serves it to Claude, VS Code and other MCP clients",
  ];
}

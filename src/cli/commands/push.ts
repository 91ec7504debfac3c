import { basename, resolve } from "node:path";
import { importBundled, natsPlugin } from "../../plugin-host/bundled.ts";
import { readSkill } from "../../skills/load/read-skill.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { type FleetCommandOptions, fleetOptions } from "../fleet-options.ts";
import { visibleLine } from "../terminal-style.ts";

export interface PushOptions extends FleetCommandOptions {
  /** In percent of the hosts. */
  readonly canary?: number;
}

/** The part of the plugin for NATS that these commands use. */
interface NatsModule {
  openSkillCatalog(options: object): Promise<Catalog>;
}

interface Catalog extends AsyncDisposable {
  push(skill: object): Promise<Entry>;
  rollback(skill: string): Promise<Entry>;
  list(): Promise<readonly Entry[]>;
  reports(): Promise<readonly Report[]>;
}

interface Entry {
  readonly skill: string;
  readonly stable: string;
  readonly canary?: { readonly digest: string; readonly share: number };
}

interface Report {
  readonly host: string;
  readonly skills: Readonly<Record<string, { readonly digest?: string; readonly problem?: string }>>;
}

/** Gives a skill to the hosts of a fleet. Runs none of its code. */
export async function push(context: CommandContext, wanted: string, options: PushOptions): Promise<number> {
  const { io, out } = context;
  const folder = resolve(io.cwd, wanted);
  if (!isSkillFolder(folder)) throw new CliError("SKILL_UNKNOWN", `${folder} is not a skill: it has neither SKILL.md nor skill.json.`, 1);
  const name = readSkill(folder, () => {})?.name ?? basename(folder);
  await using catalog = await openCatalog(context, options);
  const { isSignaturePacked, listPackedFiles } = await import("../../packages/packed-files.ts");
  const packed = await listPackedFiles(folder);
  const entry = await catalog.push({ name, folder, files: packed.files, canary: options.canary });
  if (!isSignaturePacked(packed)) out.note(`${visibleLine(name)} is not signed: hosts that require signatures refuse it (skillhost sign).`);
  showEntry(context, "Pushed", entry);
  return 0;
}

/** Takes back a version of a skill in a fleet. */
export async function rollback(context: CommandContext, skill: string, options: FleetCommandOptions): Promise<number> {
  await using catalog = await openCatalog(context, options);
  showEntry(context, "Back to", await catalog.rollback(skill));
  return 0;
}

/** Shows the catalog of a fleet, and what its hosts run. */
export async function status(context: CommandContext, options: FleetCommandOptions): Promise<number> {
  const { out } = context;
  await using catalog = await openCatalog(context, options);
  const [skills, hosts] = [await catalog.list(), await catalog.reports()];
  if (out.isJson) {
    out.envelope({ ok: true, data: { skills, hosts }, diagnostics: [] });
    return 0;
  }
  if (skills.length === 0) out.line("No skill was pushed.");
  for (const entry of skills) {
    out.line(describe(entry));
    for (const { host, skills: own } of hosts) {
      const { digest, problem } = own[entry.skill] ?? {};
      const fault = problem === undefined ? "" : `, not the one it should: ${problem}`;
      out.line(visibleLine(`  ${host}: ${digest === undefined ? "none" : short(digest)}${fault}`));
    }
  }
  return 0;
}

async function openCatalog(context: CommandContext, options: FleetCommandOptions): Promise<Catalog> {
  const fleet = fleetOptions(context, options);
  const { openSkillCatalog } = (await importBundled(natsPlugin)) as unknown as NatsModule;
  return openSkillCatalog(fleet);
}

function showEntry({ out }: CommandContext, what: string, entry: Entry): void {
  if (out.isJson) out.envelope({ ok: true, data: { ...entry }, diagnostics: [] });
  else out.line(`${what} ${describe(entry)}`);
}

function describe({ skill, stable, canary }: Entry): string {
  const other = canary === undefined ? "" : `, and ${short(canary.digest)} on ${canary.share} % of the hosts`;
  return visibleLine(`${skill} ${short(stable)}${other}`);
}

function short(digest: string): string {
  return digest.slice(0, 12);
}

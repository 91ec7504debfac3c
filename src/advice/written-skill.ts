import { findTools } from "../formats/modules/module-exports.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { loadSkill } from "../skills/load/load-skill.ts";
import { FolderListing } from "../skills/store/folder-listing.ts";
import type { ToolDefinition } from "../tools/tool.ts";
import { createParser } from "./check-skills.ts";
import { createStaticRunner } from "./static-runner.ts";
import { schemaOfZodSource } from "./zod-source.ts";

/** A skill as its files show it, without running their code. */
export interface WrittenSkill {
  readonly name: string;
  readonly description: string;
  /** The tools with statically known names. */
  readonly tools: readonly ToolDefinition[];
}

interface ReadOptions {
  /** Parses and resolves modules without running them. */
  readonly loader: ModuleLoader;
  readonly hostVersion: string;
  readonly signal: AbortSignal;
}

/** Reads a skill without running its code. Undefined: there is none, or it cannot be loaded. Parameters that zod builds are read from the text. */
export async function readWrittenSkill(folder: string, { loader, hostVersion, signal }: ReadOptions): Promise<WrittenSkill | undefined> {
  const parse = createParser();
  const staged = await loadSkill(folder, undefined, new Set(), {
    loader,
    runners: [createStaticRunner(loader, parse)],
    hostVersion,
    importTimeout: 60_000,
    signal,
    listing: new FolderListing(folder, { onLimit: () => {} }),
    seen: () => {},
  });
  if (staged.kind !== "ready") return undefined;
  const { skill, units } = staged.generation;
  const modules = units.flatMap((unit) => [...unit.files].flatMap((file) => parse(file) ?? []));
  await Promise.all(units.map((unit) => unit.retire()));
  const built = new Map(
    modules.flatMap((module) => findTools(module).map(({ name, definition }) => [name, schemaOfZodSource(definition, module)])),
  );
  const tools = skill.tools.map(({ definition }) => {
    const parameters = built.get(definition.name);
    return parameters === undefined ? definition : { ...definition, parameters };
  });
  return { name: skill.name, description: skill.description, tools };
}

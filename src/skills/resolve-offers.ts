import type { Diagnostic } from "../base/diagnostic.ts";
import { renamePrompt } from "../tools/create-prompt.ts";
import type { Prompt } from "../tools/prompt.ts";
import { promptName } from "../tools/prompt-name.ts";
import type { Resource, ResourceTemplate } from "../tools/resource.ts";
import type { ToolOrigin } from "../tools/tool.ts";
import type { ResourceSet } from "../tools/tool-source.ts";
import type { ConflictPolicy } from "./resolve-overrides.ts";
import type { Skill } from "./skill.ts";

/** What some skills offer together, beside tools. */
export interface ResolvedOffers {
  readonly prompts: readonly Prompt[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  /** The files of the skills among them, which are not looked for before this is read. */
  readonly resources: ResourceSet;
  readonly diagnostics: readonly Diagnostic[];
}

/** Decides which of several skills has a prompt's name or a resource's address. Skills come lowest precedence first. */
export function resolveOffers(skills: readonly Skill[], policyFor: (name: string) => ConflictPolicy): ResolvedOffers {
  const diagnostics: Diagnostic[] = [];
  const report: Report = (winner, loser, fate, name, policy) => void diagnostics.push(clash(winner, loser, fate, name, policy));
  const chosen = { policyFor, report };
  // What is listed later tells of itself to nobody: its author has been told of the rest when the skill was loaded.
  choose(
    skills.flatMap((skill) => skill.resources),
    ({ definition }) => definition.uri,
    chosen,
  );
  return {
    prompts: choosePrompts(skills, chosen),
    resourceTemplates: choose(
      skills.flatMap((skill) => skill.resourceTemplates),
      ({ definition }) => definition.uriTemplate,
      chosen,
    ),
    resources: joinResources(skills, policyFor),
    diagnostics,
  };
}

type Report = (winner: Item, loser: Item, fate: string, name: string, policy: ConflictPolicy) => void;

interface Choosing {
  readonly policyFor: (name: string) => ConflictPolicy;
  readonly report?: Report;
}

interface Item {
  readonly origin: ToolOrigin;
  readonly revision: string;
}

function choosePrompts(skills: readonly Skill[], choosing: Choosing): readonly Prompt[] {
  const all = skills.flatMap((skill) => skill.offeredPrompts);
  const taken = new Set(all.map(({ definition }) => definition.name));
  return choose(
    all,
    ({ definition }) => definition.name,
    choosing,
    (loser) => {
      const base = `${loser.origin.source}-${loser.definition.name}`;
      let name = promptName(base);
      for (let n = 2; taken.has(name); n++) name = promptName(`${base}-${n}`);
      taken.add(name);
      return renamePrompt(loser, name);
    },
  );
}

function choose<T extends Item>(
  items: readonly T[],
  nameOf: (item: T) => string,
  { policyFor, report }: Choosing,
  rename?: (loser: T) => T,
): readonly T[] {
  const byName = new Map<string, T>();
  for (const item of items) {
    const name = nameOf(item);
    const before = byName.get(name);
    if (before === undefined) {
      byName.set(name, item);
      continue;
    }
    const policy = policyFor(name);
    const [winner, loser] = policy === "keep-first" || policy === "error" ? [before, item] : [item, before];
    byName.set(name, winner);
    const renamed = policy === "rename" ? rename?.(loser) : undefined;
    if (renamed) byName.set(nameOf(renamed), renamed);
    const fate = renamed ? `this one is offered as "${nameOf(renamed)}"` : "this one is not offered";
    if (loser.revision !== winner.revision) report?.(winner, loser, fate, name, policy);
  }
  return Object.freeze([...byName.values()]);
}

function joinResources(skills: readonly Skill[], policyFor: Choosing["policyFor"]): ResourceSet {
  let of: readonly (readonly Resource[])[] | undefined;
  let resources: readonly Resource[] = [];
  return {
    get resources() {
      const now = skills.flatMap((skill) => [skill.resources, skill.files.resources]);
      if (of !== undefined && now.every((list, index) => list === of?.[index])) return resources;
      of = now;
      resources = choose(now.flat(), ({ definition }) => definition.uri, { policyFor });
      return resources;
    },
  };
}

function clash(winner: Item, loser: Item, fate: string, name: string, policy: ConflictPolicy): Diagnostic {
  const [has, lost] = [winner.origin.source, loser.origin.source];
  const message = `The skills "${has}" and "${lost}" both offer "${name}": that of "${has}" is used, ${fate}. Give one of them another name.`;
  const code = "definition" in winner && "get" in winner ? "PROMPT_NAME_CLASH" : "RESOURCE_CLASH";
  const file = loser.origin.file === undefined ? {} : { file: loser.origin.file };
  return { severity: policy === "error" ? "error" : "warning", code, ...file, source: lost, message };
}

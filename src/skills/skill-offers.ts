import type { Diagnostic } from "../base/diagnostic.ts";
import type { Prompt } from "../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../tools/resource.ts";
import type { ToolOrigin } from "../tools/tool.ts";
import type { ResourceSet } from "../tools/tool-source.ts";
import type { SkillText } from "./read-skill.ts";
import type { ToolUnit } from "./stage-tool.ts";
import { createTextPrompts } from "./text-prompts.ts";

/** What a generation of a skill offers beside its tools. */
export interface SkillOffers {
  readonly prompts: readonly Prompt[];
  readonly resources: ResourceSet;
  readonly resourceTemplates: readonly ResourceTemplate[];
  /** About what two of them have in common. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Puts together what a skill's modules and texts offer. The first of two of one name or address has it; modules come first. */
export function assembleSkillOffers(folder: string, text: SkillText, units: readonly ToolUnit[]): SkillOffers {
  const diagnostics: Diagnostic[] = [];
  const distinct = <T extends { readonly origin: ToolOrigin }>(items: readonly T[], what: string, keyOf: (item: T) => string): T[] => {
    const byKey = new Map<string, T>();
    for (const item of items) {
      const first = byKey.get(keyOf(item));
      if (first === undefined) byKey.set(keyOf(item), item);
      else diagnostics.push(thereTwice(what, keyOf(item), item.origin, first.origin, text.name));
    }
    return [...byKey.values()];
  };
  const prompts = [...units.flatMap((unit) => unit.prompts), ...createTextPrompts(folder, text)];
  const resources = distinct(
    units.flatMap((unit) => unit.resources),
    "resources",
    ({ definition }) => definition.uri,
  );
  const templates = units.flatMap((unit) => unit.resourceTemplates);
  return {
    prompts: distinct(prompts, "prompts", ({ definition }) => definition.name),
    resources: joinLists(
      resources,
      units.flatMap((unit) => unit.resourceLists),
    ),
    resourceTemplates: distinct(templates, "resource templates", ({ definition }) => definition.uriTemplate),
    diagnostics,
  };
}

function joinLists(fixed: readonly Resource[], lists: readonly ResourceSet[]): ResourceSet {
  if (lists.length === 0) return { resources: fixed };
  let of: readonly (readonly Resource[])[] = [];
  let resources = fixed;
  return {
    get resources() {
      const now = lists.map((list) => list.resources);
      if (now.every((list, index) => list === of[index])) return resources;
      of = now;
      const byUri = new Map([...now.flat(), ...fixed].map((resource) => [resource.definition.uri, resource]));
      resources = Object.freeze([...byUri.values()]);
      return resources;
    },
  };
}

function thereTwice(what: string, key: string, origin: ToolOrigin, first: ToolOrigin, source: string): Diagnostic {
  const message = `This skill has two ${what} "${key}"; that of ${first.file ?? "another file"} is offered. Give one another name.`;
  const code = what === "prompts" ? "PROMPT_NAME_TWICE" : "RESOURCE_TWICE";
  return { severity: "warning", code, ...(origin.file !== undefined && { file: origin.file }), source, message };
}

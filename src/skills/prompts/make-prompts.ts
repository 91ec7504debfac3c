import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError, toError } from "../../base/errors.ts";
import type { Scope } from "../../io/scope.ts";
import { createPrompt } from "../../tools/create/create-prompt.ts";
import { createResource, createResourceTemplate, type ResourcePlace } from "../../tools/create/create-resource.ts";
import type { DefinedPrompt } from "../../tools/define/define-prompt.ts";
import type { DefinedResource } from "../../tools/define/define-resource.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { ToolOrigin } from "../../tools/tool.ts";
import type { ResourceSet } from "../../tools/tool-source.ts";
import type { RunnerTarget } from "../load/tool-runner.ts";
import { createResourceList } from "./resource-list.ts";

/** The prompts and resources of a skill file. */
export interface Offered {
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  readonly resourceLists: readonly ResourceSet[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface OfferDefinitions {
  readonly prompts: readonly DefinedPrompt[];
  readonly resources: readonly DefinedResource[];
}

/** Creates prompts and resources from the definitions of a skill file, and asks its templates for their lists. */
export async function makeOffers(definitions: OfferDefinitions, file: string, target: RunnerTarget, scope: Scope): Promise<Offered> {
  const { skill } = target;
  const diagnostics: Diagnostic[] = [];
  const origin = { kind: "skill", source: skill.name, file } as const;
  const generation = `${skill.folder}#${target.generation}`;
  const place: ResourcePlace = { origin, generation };
  const templates = definitions.resources.filter(({ template }) => template !== undefined);
  const report = (error: unknown, defined: DefinedResource): void => void diagnostics.push(listFailed(error, defined, origin));
  const lists = templates.flatMap((defined) => {
    const list = createResourceList(defined, place, { signal: scope.signal, onChange: () => target.onResourcesChanged?.() });
    return list === undefined ? [] : [{ list, defined }];
  });
  await Promise.all(lists.map(({ list, defined }) => list.refresh().catch((error) => report(error, defined))));
  return {
    prompts: definitions.prompts.map((defined) => createPrompt(defined, { ...origin, nativeName: defined.name }, generation)),
    resources: definitions.resources.filter(({ template }) => template === undefined).map((defined) => createResource(defined, place)),
    resourceTemplates: templates.map((defined) => createResourceTemplate(defined, place)),
    resourceLists: lists.map(({ list }) => list),
    diagnostics,
  };
}

function listFailed(error: unknown, { uri }: DefinedResource, { source, file }: Omit<ToolOrigin, "nativeName">): Diagnostic {
  const code = error instanceof HostError ? error.code : "RESOURCE_LIST";
  const message = `The list of the resources ${uri} is not available: ${toError(error).message}. They can still be read by their URIs.`;
  return { severity: "error", code, ...(file !== undefined && { file }), source, message };
}

import type { Prompt } from "../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../tools/resource.ts";
import type { ToolOrigin } from "../tools/tool.ts";
import type { SourceSnapshot } from "../tools/tool-source.ts";

/** The prompts and resources of a source. */
export type SourceOffers = Required<Pick<SourceSnapshot, "prompts" | "resources" | "resourceTemplates">>;

/** What a source offers beside tools, as its plugin's, whatever it says of itself. `originOf` gives the origin by its own name. */
export function ownOffers(
  { prompts, resources, resourceTemplates }: SourceSnapshot,
  originOf: (nativeName: string) => ToolOrigin,
): SourceOffers {
  return {
    prompts: Object.freeze((prompts ?? []).map((prompt) => ownPrompt(prompt, originOf(prompt.definition.name)))),
    resources: Object.freeze((resources ?? []).map((resource) => ownResource(resource, originOf(resource.definition.name)))),
    resourceTemplates: Object.freeze(
      (resourceTemplates ?? []).map((template) => ownTemplate(template, originOf(template.definition.name))),
    ),
  };
}

// Each method is called on the object that it belongs to: it may be one of a class.
function ownPrompt(prompt: Prompt, origin: ToolOrigin): Prompt {
  const { definition, revision } = prompt;
  return Object.freeze({
    definition,
    origin,
    revision,
    get: (...args: Parameters<Prompt["get"]>) => prompt.get(...args),
    ...(prompt.complete && { complete: prompt.complete.bind(prompt) }),
  });
}

function ownResource(resource: Resource, origin: ToolOrigin): Resource {
  const { definition, revision } = resource;
  return Object.freeze({
    definition,
    origin,
    revision,
    read: (...args: Parameters<Resource["read"]>) => resource.read(...args),
    ...(resource.watch && { watch: resource.watch.bind(resource) }),
  });
}

function ownTemplate(template: ResourceTemplate, origin: ToolOrigin): ResourceTemplate {
  const { definition, revision } = template;
  return Object.freeze({
    definition,
    origin,
    revision,
    match: (uri: string) => template.match(uri),
    read: (...args: Parameters<ResourceTemplate["read"]>) => template.read(...args),
    ...(template.watch && { watch: template.watch.bind(template) }),
    ...(template.complete && { complete: template.complete.bind(template) }),
  });
}

import type { Diagnostic } from "../../base/diagnostic.ts";
import { type Expansion, expandPrompt, takesArguments } from "../../formats/skills/expand-prompt.ts";
import type { ArgumentField } from "../../formats/skills/front-matter-fields.ts";
import { assemblePrompt } from "../../tools/create/create-prompt.ts";
import { type Prompt, type PromptArgument, type PromptDefinition, promptName } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { ToolOrigin } from "../../tools/tool.ts";
import type { ResourceSet } from "../../tools/tool-source.ts";
import type { SkillText } from "../load/read-skill.ts";
import type { ToolUnit } from "../load/stage-tool.ts";

/** The prompts and resources of a generation of a skill. */
export interface SkillOffers {
  readonly prompts: readonly Prompt[];
  readonly resources: ResourceSet;
  readonly resourceTemplates: readonly ResourceTemplate[];
  /** Reports duplicate names. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Assembles the prompts and resources of a skill's modules and texts. The first of two with the same name or URI wins; modules come
 * first.
 */
export function assembleSkillOffers(folder: string, text: SkillText, units: readonly ToolUnit[]): SkillOffers {
  const ofText = createTextPrompts(folder, text);
  if (units.length === 0 && ofText.length < 2) return { ...nothingElse, prompts: ofText };
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
  const prompts = [...units.flatMap((unit) => unit.prompts), ...ofText];
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

/** What most skills offer beside their instructions. */
const nothingElse: Omit<SkillOffers, "prompts"> = Object.freeze({
  resources: Object.freeze({ resources: Object.freeze([]) }),
  resourceTemplates: Object.freeze([]),
  diagnostics: Object.freeze([]),
});

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
  const message = `This skill has two ${what} "${key}"; the one in ${first.file ?? "another file"} is used. Rename one of them.`;
  const code = what === "prompts" ? "PROMPT_NAME_TWICE" : "RESOURCE_TWICE";
  return { severity: "warning", code, ...(origin.file !== undefined && { file: origin.file }), source, message };
}

/**
 * The prompts that users can invoke from a skill's text: its instructions under the skill's name, and each prompt file under
 * `<skill>-<file>` or the name in its front matter. None for a skill with `user-invocable: false`.
 */
function createTextPrompts(folder: string, text: SkillText): readonly Prompt[] {
  const { document, body, name, description, promptFiles } = text;
  if (document?.userInvocable === false) return [];
  const ofBody = document !== undefined && body?.isBlank === false ? [{ name, description, arguments: ofDocument(document), body }] : [];
  return [
    ...ofBody.map((fields) => textPrompt({ folder, skill: name, path: text.documentName ?? "SKILL.md", ...fields })),
    ...promptFiles
      .filter(({ prompt }) => prompt.userInvocable !== false && prompt.body.trim() !== "")
      .map(({ path, prompt }) => {
        const own =
          prompt.name ??
          `${name}-${path
            .replace(/^prompts\//, "")
            .replace(/\.[^./]+$/, "")
            .replaceAll("/", "-")}`;
        return textPrompt({
          folder,
          skill: name,
          path,
          ...prompt,
          body: { source: prompt.body.trim() },
          name: own,
          arguments: ofFile(prompt),
        });
      }),
  ];
}

interface Declared {
  readonly arguments?: readonly ArgumentField[];
  readonly argumentHint?: string;
}

// The argument for `$ARGUMENTS`, because MCP prompts have only named arguments.
const rest = "arguments";

function ofDocument({ arguments: declared, argumentHint }: Declared): readonly PromptArgument[] {
  return declared?.length ? declared : [{ name: rest, ...(argumentHint !== undefined && { description: argumentHint }) }];
}

function ofFile(prompt: Declared & { readonly body: string }): readonly PromptArgument[] {
  const isCalledWithSome = prompt.arguments?.length || prompt.argumentHint !== undefined || takesArguments(prompt.body);
  return isCalledWithSome ? ofDocument(prompt) : [];
}

interface TextFields {
  readonly folder: string;
  readonly skill: string;
  readonly path: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments: readonly PromptArgument[];
  /** Without expansion. */
  readonly body: { readonly source: string };
}

function textPrompt({ folder, skill, path, name, title, description, arguments: declared, body }: TextFields): Prompt {
  const definition: PromptDefinition = Object.freeze({
    name: promptName(name),
    ...(title !== undefined && { title }),
    ...(description !== undefined && description !== "" && { description }),
    ...(declared.length > 0 && { arguments: Object.freeze(declared.map((argument) => Object.freeze({ ...argument }))) }),
  });
  const isOneText = declared.length === 1 && declared[0]?.name === rest;
  const argumentNames = isOneText ? [] : declared.map((argument) => argument.name);
  return assemblePrompt({
    definition,
    origin: { kind: "skill", source: skill, nativeName: name, file: `${folder}/${path}` },
    // Hashed on demand: most skills never change after loading.
    generation: () => `${folder}\0${body.source}`,
    async make(args) {
      const given: Expansion = isOneText ? { argumentsText: args[rest] ?? "" } : { argumentNames, argumentValues: args };
      const text = expandPrompt(body.source, { baseDir: folder, ...(declared.length > 0 && given) });
      return { ...(description !== undefined && { description }), messages: [{ role: "user", content: { type: "text", text } }] };
    },
  });
}

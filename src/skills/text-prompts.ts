import type { ArgumentField } from "../formats/skills/front-matter-fields.ts";
import { type Expansion, expandPrompt, takesArguments } from "../formats/skills/prompt-file.ts";
import { assemblePrompt } from "../tools/create-prompt.ts";
import type { Prompt, PromptArgument, PromptDefinition } from "../tools/prompt.ts";
import { promptName } from "../tools/prompt-name.ts";
import type { SkillText } from "./read-skill.ts";

/**
 * What a person can call up of a skill's text: its instructions under the skill's name, and each prompt file under
 * `<skill>-<file>` or the name in its front matter. None of a skill that says `user-invocable: false`.
 */
export function createTextPrompts(folder: string, text: SkillText): readonly Prompt[] {
  const { document, body, name, description, promptFiles } = text;
  if (document?.userInvocable === false) return [];
  const ofBody = document !== undefined && body !== undefined && body.trim() !== "" ? [{ ...document, name, description }] : [];
  return [
    ...ofBody.map((fields) =>
      textPrompt({ folder, skill: name, path: text.documentName ?? "SKILL.md", ...fields, arguments: ofDocument(fields) }),
    ),
    ...promptFiles
      .filter(({ prompt }) => prompt.userInvocable !== false && prompt.body.trim() !== "")
      .map(({ path, prompt }) => {
        const own =
          prompt.name ??
          `${name}-${path
            .replace(/^prompts\//, "")
            .replace(/\.[^./]+$/, "")
            .replaceAll("/", "-")}`;
        return textPrompt({ folder, skill: name, path, ...prompt, body: prompt.body.trim(), name: own, arguments: ofFile(prompt) });
      }),
  ];
}

interface Declared {
  readonly arguments?: readonly ArgumentField[];
  readonly argumentHint?: string;
}

// Of both kinds of text; a prompt of MCP is called with named arguments only.
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
  readonly body: string;
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
    // Hashed when somebody compares: most skills are loaded and never changed.
    generation: `${folder}\0${body}`,
    async make(args) {
      const given: Expansion = isOneText ? { argumentsText: args[rest] ?? "" } : { argumentNames, argumentValues: args };
      const text = expandPrompt(body, { baseDir: folder, ...(declared.length > 0 && given) });
      return { ...(description !== undefined && { description }), messages: [{ role: "user", content: { type: "text", text } }] };
    },
  });
}

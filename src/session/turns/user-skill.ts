import { errorMessage } from "../../base/errors.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import { type AgentPromptHost, tellSkillInvoked } from "../agents/agent-prompt.ts";
import { skillContext } from "../instructions/model-text.ts";

const invocation = /^\/(\S+)(?:\s+([\s\S]*))?$/;

/**
 * What a model gets instead of a prompt such as `/release-notes since v2`, when a person's skill has that name: its
 * instructions with what follows the name filled in, as Agent Skills clients do. Undefined: the prompt calls up no skill
 * and means itself.
 */
export async function userSkillContext(prompt: string, host: AgentPromptHost): Promise<string | undefined> {
  const [, name, argumentsText = ""] = invocation.exec(prompt.trim()) ?? [];
  const skill = name === undefined ? undefined : host.skills().findLast((entry) => entry.name === name && isInvocable(entry));
  if (skill === undefined) return undefined;
  try {
    const content = skillContext({ name: skill.name, folder: skill.folder, body: await skill.instructions(argumentsText.trim()) });
    tellSkillInvoked(skill, content, { events: host.events, trigger: "user-invoked" });
    return content;
  } catch (error) {
    host.log.error(`The instructions of skill "${skill.name}" could not be read.`, { error: errorMessage(error) });
    return undefined;
  }
}

function isInvocable({ userInvocable, hasInstructions }: SkillEntry): boolean {
  return userInvocable !== false && hasInstructions !== false;
}

import { errorMessage } from "../../base/errors.ts";
import type { Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import { emitSkillInvoked } from "../agents/agent-prompt.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { createSessionTool } from "../catalog/session-tool.ts";
import { skillContext, skillText } from "../prompt/model-text.ts";

/** Gives the model the instructions of a skill, in a message after the result. */
export const useSkill: Tool = createSessionTool({
  name: "skill",
  description:
    "Loads the instructions of a skill. Skills contain instructions for certain kinds of tasks; the available skills are listed in the system message. When a skill fits what you are about to do, load it before you begin.",
  parameters: {
    type: "object",
    properties: {
      skill: { type: "string", description: "The skill's name." },
      file: { type: "string", description: "A file that the instructions of a skill without a base directory refer to: returns its text." },
    },
    required: ["skill"],
  },
  handler: async ({ skill: name, file }: SkillArguments, _invocation: unknown, context: ToolContext): Promise<ToolResult> => {
    const { session, agent, addMessage } = sessionCallOf(context);
    const offered = offeredSkills(session.skills());
    const skill = offered.findLast((entry) => entry.name === name);
    if (skill === undefined) return failureResult(skillText.unknown(name, [...new Set(offered.map((entry) => entry.name))]));
    if (file !== undefined) {
      // A skill that lies in no folder, such as one of an MCP server, has no other way to its files.
      try {
        return successResult(decoder.decode(await skill.read(file)));
      } catch (error) {
        session.log.error(`A file of skill "${skill.name}" could not be read.`, { file, error: errorMessage(error) });
        return failureResult(skillText.unreadableFile(skill.name, file));
      }
    }
    try {
      const content = skillContext({ name, folder: skill.folder, body: await skill.instructions() });
      addMessage(content);
      emitSkillInvoked(skill, content, { events: session.events, trigger: "agent-invoked", agentId: agent.agentId });
      return successResult(skillText.loaded(name));
    } catch (error) {
      session.log.error(`The instructions of skill "${name}" could not be read.`, { error: errorMessage(error) });
      return failureResult(skillText.unreadable(name));
    }
  },
});

interface SkillArguments {
  readonly skill: string;
  readonly file?: string;
}

// Binary files would only waste context.
const decoder = new TextDecoder("utf-8", { fatal: true });

/** The skills that a model may load. */
export function offeredSkills(skills: readonly SkillEntry[]): readonly SkillEntry[] {
  return skills.filter((skill) => skill.hiddenFromModel !== true && skill.hasInstructions !== false);
}

import { errorMessage } from "../../base/errors.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import type { SessionEvents } from "../history/events.ts";
import { skillContext } from "../prompt/model-text.ts";
import type { SessionServices } from "../tools/session-tool-services.ts";
import type { AgentProfile } from "./agent-profiles.ts";

/** What reading the instructions of a skill takes. */
export type SkillSource = Pick<SessionServices, "events" | "log" | "skills">;

/** The part of the system message about the agent itself: its prompt, and the instructions of its initial skills. */
export async function agentPromptOf(
  { prompt, skills: names, name: agent }: AgentProfile,
  host: SkillSource,
  agentId?: string,
): Promise<string> {
  const skills = host.skills();
  const parts = [prompt.trim()];
  for (const name of names) {
    const skill = skills.findLast((entry) => entry.name === name);
    if (skill === undefined)
      host.log.warning(`Agent "${agent}" lists skill "${name}" to load at the start, but this session has no such skill.`);
    else parts.push(await contextOf(skill, host, agentId));
  }
  return parts.filter((part) => part !== "").join("\n\n");
}

async function contextOf(skill: SkillEntry, host: SkillSource, agentId: string | undefined): Promise<string> {
  try {
    const content = skillContext({ name: skill.name, folder: skill.folder, body: await skill.instructions() });
    emitSkillInvoked(skill, content, { events: host.events, trigger: "context-load", agentId });
    return content;
  } catch (error) {
    host.log.error(`The instructions of skill "${skill.name}" could not be read.`, { error: errorMessage(error) });
    return "";
  }
}

interface SkillUse {
  readonly events: SessionEvents;
  readonly trigger: "agent-invoked" | "user-invoked" | "context-load";
  readonly agentId?: string | undefined;
}

/** Emits that a skill's instructions were added to a conversation. */
export function emitSkillInvoked({ name, description, folder }: SkillEntry, content: string, { events, trigger, agentId }: SkillUse): void {
  events.append("skill.invoked", { name, path: folder ?? "", content, description, source: "custom", trigger }, agentId);
}

/** Caches the prompt of the agent that a session has selected until the agent or one of its skills changes. */
export class AgentPromptCache {
  readonly #host: SkillSource;
  #profile: AgentProfile | undefined;
  #skills: readonly (SkillEntry | undefined)[] = [];
  #prompt: Promise<string> | undefined;

  constructor(host: SkillSource) {
    this.#host = host;
  }

  promptOf(profile: AgentProfile | undefined): Promise<string> | undefined {
    if (profile === undefined) return undefined;
    const all = profile.skills.length === 0 ? [] : this.#host.skills();
    const skills = profile.skills.map((name) => all.findLast((skill) => skill.name === name));
    const isSame = profile === this.#profile && skills.every((skill, index) => skill === this.#skills[index]);
    if (isSame && this.#prompt !== undefined) return this.#prompt;
    this.#profile = profile;
    this.#skills = skills;
    this.#prompt = agentPromptOf(profile, this.#host);
    return this.#prompt;
  }
}

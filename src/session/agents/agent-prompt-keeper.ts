import type { SkillEntry } from "../../tools/tool-source.ts";
import { type AgentPromptHost, agentPromptOf } from "./agent-prompt.ts";
import type { AgentProfile } from "./agents.ts";

/** Keeps what the agent that a session has selected is told of itself, until the agent or one of its skills is another. */
export class AgentPromptKeeper {
  readonly #host: AgentPromptHost;
  #profile: AgentProfile | undefined;
  #skills: readonly (SkillEntry | undefined)[] = [];
  #prompt: Promise<string> | undefined;

  constructor(host: AgentPromptHost) {
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

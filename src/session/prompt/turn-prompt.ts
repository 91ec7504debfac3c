import { toError } from "../../base/errors.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { SessionEvent } from "../history/events.ts";
import type { SessionContext } from "../session-context.ts";
import { assembleInstructions, eagerPrompts, type InstructionParts } from "./system-prompt.ts";

/** Caches a session's system message, and emits events when it or the session's skills have changed. */
export class SystemPromptCache {
  readonly #host: Pick<SessionContext, "events" | "log">;
  /** What the system message is made of now. Equal parts are the same objects. */
  readonly #partsOf: () => Promise<InstructionParts>;
  /** The prompts that were announced, by skill. */
  readonly #invoked = new Map<string, string>();
  #skills: readonly SkillEntry[] | undefined;
  #parts: InstructionParts | undefined;
  #catalog: ToolCatalog | undefined;
  #text = "";
  #announced: string | undefined;

  constructor(host: Pick<SessionContext, "events" | "log">, parts: () => Promise<InstructionParts>) {
    this.#host = host;
    this.#partsOf = parts;
  }

  /** Restores what was announced before the session was resumed. */
  replay(events: Iterable<SessionEvent>): void {
    for (const { type, data, agentId } of events) {
      if (agentId !== undefined) continue;
      if (type === "system.message") this.#announced = String(data["content"]);
      if (type === "skill.invoked" && data["trigger"] === "context-load") this.#invoked.set(String(data["name"]), String(data["content"]));
    }
  }

  /** The system message for a catalog. If it cannot be assembled, the previous one is used until something changes. */
  async refresh(catalog: ToolCatalog): Promise<string> {
    const parts = await this.#partsOf();
    if (catalog !== this.#catalog || this.#parts === undefined || !isSame(parts, this.#parts)) {
      this.#parts = parts;
      this.#catalog = catalog;
      this.#text = await this.#assemble(parts);
    }
    this.#announceSkills(parts.skills);
    this.#announceText();
    return this.#text;
  }

  async #assemble(parts: InstructionParts): Promise<string> {
    try {
      return await assembleInstructions(parts);
    } catch (error) {
      const { events, log } = this.#host;
      const message = "The instructions for the model could not be refreshed; the previous ones stay in use.";
      log.error(message, { error: toError(error) });
      events.append("session.info", { infoType: "instructions_refresh", message });
      // Only the session's own wishes run code of others.
      return this.#text === "" ? assembleInstructions({ ...parts, wishes: [] }) : this.#text;
    }
  }

  #announceText(): void {
    if (this.#text === this.#announced || this.#text === "") return;
    this.#announced = this.#text;
    this.#host.events.append("system.message", { role: "system", content: this.#text });
  }

  #announceSkills(skills: readonly SkillEntry[]): void {
    if (skills === this.#skills) return;
    this.#skills = skills;
    const { events } = this.#host;
    if (events.wants("session.skills_loaded")) events.append("session.skills_loaded", { skills: skills.map(describe) });
    for (const skill of skills) this.#announcePrompts(skill);
  }

  #announcePrompts(skill: SkillEntry): void {
    const content = eagerPrompts(skill);
    if (content === "" || this.#invoked.get(skill.name) === content) return;
    this.#invoked.set(skill.name, content);
    const { name, description, folder = "" } = skill;
    this.#host.events.append("skill.invoked", { name, path: folder, content, description, source: "custom", trigger: "context-load" });
  }
}

function isSame(parts: InstructionParts, before: InstructionParts): boolean {
  return (Object.keys(parts) as (keyof InstructionParts)[]).every((key) => parts[key] === before[key]);
}

function describe({ name, description, folder, hiddenFromModel }: SkillEntry): object {
  const path = folder === undefined ? {} : { path: folder };
  return { name, description, source: "custom", userInvocable: true, enabled: true, ...path, ...(hiddenFromModel && { hiddenFromModel }) };
}

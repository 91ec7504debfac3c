import type { Logger } from "../base/logger.ts";
import type { SkillEntry } from "../tools/tool-source.ts";
import type { SubAgents } from "./agents/sub-agents.ts";
import type { SessionEvents } from "./records/events.ts";

/** What the tools that a session brings itself need of it. */
export interface SessionServices {
  readonly events: SessionEvents;
  readonly log: Logger;
  /** The skills that are active, lowest precedence first. */
  skills(): readonly SkillEntry[];
  readonly subAgents: SubAgents;
}

import type { Logger } from "../../base/logger.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import type { SubAgents } from "../agents/sub-agents.ts";
import type { SessionDatabase } from "../database/session-database.ts";
import type { SessionEvents } from "../history/events.ts";
import type { AgentMode } from "../prompt/system-prompt.ts";

/** The plan that a session works on, and the end of that work. */
export interface SessionPlan {
  /** Undefined: there is none. */
  read(): Promise<string | undefined>;
  write(content: string): Promise<void>;
  leave(next: { readonly mode: AgentMode; readonly approvesEdits: boolean }): Promise<void>;
}

/** What the tools that a session brings itself need of it. */
export interface SessionServices {
  readonly events: SessionEvents;
  readonly log: Logger;
  /** The skills that are active, lowest precedence first. */
  skills(): readonly SkillEntry[];
  readonly subAgents: SubAgents;
  readonly plan: SessionPlan;
  /** Undefined: the session cannot have one. */
  readonly database: SessionDatabase | undefined;
}

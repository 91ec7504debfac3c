import type { Logger } from "../base/logger.ts";
import type { SessionEvents } from "./history/events.ts";
import type { ResolvedSessionConfig } from "./session-config.ts";

/** What every part of a session works with: which session it is, its options, its events and its log. */
export interface SessionContext {
  readonly sessionId: string;
  readonly log: Logger;
  readonly events: SessionEvents;
  /** The current options. `update` replaces the object, so read it each time. */
  readonly config: ResolvedSessionConfig;
}

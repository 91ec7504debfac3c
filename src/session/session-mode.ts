import { join } from "node:path";
import type { SessionEnvironment } from "./environment.ts";
import type { SessionEvents } from "./history/events.ts";
import { createPlan, planFileName, planInFile } from "./plan-file.ts";
import type { AgentMode } from "./prompt/system-prompt.ts";
import type { ResolvedSessionConfig, SessionChange } from "./session-config.ts";
import type { SessionPlan } from "./session-services.ts";
import type { TurnRunner } from "./turns/turn-runner.ts";

interface ModeHost {
  readonly sessionId: string;
  readonly environment: SessionEnvironment;
  readonly events: SessionEvents;
  readonly turns: TurnRunner;
  readonly config: ResolvedSessionConfig;
  update(change: SessionChange): Promise<void>;
}

/** Tells what a change made different for whoever watches the conversation: its mode, and who answers. */
export function emitChanges({ events, turns, config }: ModeHost, before: ResolvedSessionConfig): void {
  const [previousMode, newMode] = [before.turn.agentMode, config.turn.agentMode];
  if (previousMode !== newMode) events.append("session.mode_changed", { previousMode, newMode });
  const { model } = config.view;
  if (model !== undefined && model !== before.view.model) turns.modelChanged(model, before.view.model);
}

/** The plan of a session, wherever it is kept. */
export function createSessionPlan(host: ModeHost): SessionPlan {
  const { environment, sessionId, events } = host;
  const storage = environment.plan ?? planInFile(() => join(environment.sessionDirectory(sessionId), planFileName));
  return {
    ...createPlan(storage, events),
    leave: ({ mode, approvesEdits }) => host.update(changeAfterPlan(host.config, mode, approvesEdits)),
  };
}

/** What changes when somebody has a plan carried out. */
function changeAfterPlan({ options }: ResolvedSessionConfig, agentMode: AgentMode, approvesEdits: boolean): SessionChange {
  const { allow = [], ...others } = options.permissions ?? {};
  const widened = allow.includes("write") ? allow : [...allow, "write"];
  return { agentMode, ...(approvesEdits && { permissions: { ...others, allow: widened } }) };
}

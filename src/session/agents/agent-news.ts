import type { SessionEvents } from "../records/events.ts";
import type { AgentProfile, SessionAgents } from "./agents.ts";

const selectedType = "subagent.selected";

/** Tells which custom agent a session's conversation belongs to. */
export interface AgentNews {
  /** Tells what was selected from the start, if nobody has been told yet. */
  begin(): void;
  /** Tells what an update changed. */
  changed(before: SessionAgents, now: SessionAgents): void;
}

/** The agent selected from the start is told when the first listener has come, or the first turn begins. */
export function createAgentNews(events: SessionEvents, initial: AgentProfile | undefined): AgentNews {
  let untold = initial;
  const begin = (): void => {
    if (untold !== undefined) tellSelected(events, untold);
    untold = undefined;
  };
  events.onSinkAdded((type) => {
    if (type === undefined || type === selectedType) queueMicrotask(begin);
  });
  return {
    begin,
    changed(before, now) {
      begin();
      if (!isSameAgents(before.custom, now.custom)) tellAgents(events, now);
      if (before.selected?.name === now.selected?.name) return;
      if (now.selected !== undefined) tellSelected(events, now.selected);
      else if (events.wants("subagent.deselected")) events.append("subagent.deselected", {});
    },
  };
}

function tellSelected(events: SessionEvents, { name, displayName, tools }: AgentProfile): void {
  if (!events.wants(selectedType)) return;
  events.append(selectedType, { agentName: name, agentDisplayName: displayName, tools: tools ?? null });
}

function tellAgents(events: SessionEvents, { custom }: SessionAgents): void {
  if (!events.wants("session.custom_agents_updated")) return;
  const agents = custom.map(({ name, displayName, description, tools, model, isPlugins }) => ({
    id: name,
    name,
    displayName,
    description,
    source: isPlugins ? "plugin" : "custom",
    tools: tools ?? null,
    userInvocable: true,
    ...(model !== undefined && { model }),
  }));
  events.append("session.custom_agents_updated", { agents, errors: [], warnings: [] });
}

function isSameAgents(before: readonly AgentProfile[], now: readonly AgentProfile[]): boolean {
  return before.length === now.length && JSON.stringify(before) === JSON.stringify(now);
}

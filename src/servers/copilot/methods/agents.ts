import type { AgentProfile } from "../../../session/agents/agents.ts";
import type { Session } from "../../../session/session.ts";
import { findSession } from "../sessions.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The agents of a session. */
export const agents: MethodFamily = {
  "session.agent.list": (call) => ({ agents: describeAll(sessionOf(call)) }),
  "session.agent.reload": (call) => ({ agents: describeAll(sessionOf(call)) }),
  "session.agent.getCurrent"(call) {
    const { selected } = sessionOf(call).config.agents;
    return { agent: selected === undefined ? null : describe(selected) };
  },
  async "session.agent.select"(call) {
    const session = sessionOf(call);
    await session.update({ agent: call.params.text("name") });
    return { agent: describe(session.config.agents.selected!) };
  },
  async "session.agent.deselect"(call) {
    await sessionOf(call).update({ agent: undefined });
  },
  async "agents.discover"({ server }) {
    const session = await (await server.host()).createSession({ persist: false });
    try {
      return { agents: describeAll(session) };
    } finally {
      await session.disconnect();
    }
  },
  // Agents come with plugins and with sessions; no folders are searched for them here.
  "agents.getDiscoveryPaths": () => ({ paths: [] }),
};

function sessionOf({ server, params }: Call): Session {
  return findSession(server, params).session;
}

function describeAll({ config }: Session): readonly object[] {
  return config.agents.custom.map(describe);
}

function describe({ name, displayName, description, tools, model, infer, isPlugins }: AgentProfile): object {
  return {
    id: name,
    name,
    displayName,
    description,
    ...(tools !== undefined && { tools }),
    ...(model !== undefined && { model }),
    ...(!infer && { disableModelInvocation: true }),
    ...(isPlugins && { source: "plugin" }),
  };
}

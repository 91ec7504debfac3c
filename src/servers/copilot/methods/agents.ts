import { join, resolve } from "node:path";
import type { AgentProfile, CustomAgentOptions } from "../../../session/agents/agent-profiles.ts";
import type { Session } from "../../../session/session.ts";
import { badParams } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import { agentFolders, discoverConfiguration } from "../request/discover-configuration.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Agents of a session, and of the server. */
export const agents: MethodFamily = {
  "session.agent.list": (call) => ({ agents: describeAll(sessionOf(call)) }),
  "session.agent.reload": (call) => ({ agents: describeAll(sessionOf(call)) }),
  "session.agent.getCurrent"(call) {
    const { selected } = sessionOf(call).config.agents;
    return selected === undefined ? {} : { agent: describe(selected) };
  },
  async "session.agent.select"(call) {
    const session = sessionOf(call);
    await session.update({ agent: call.params.text("name") });
    return { agent: describe(session.config.agents.selected!) };
  },
  async "session.agent.deselect"(call) {
    await sessionOf(call).update({ agent: undefined });
  },
  async "session.agent.setPrompt"(call) {
    const session = sessionOf(call);
    const [id, prompt] = [call.params.text("id"), call.params.text("prompt")];
    const { customAgents = [] } = session.config.options;
    const profile = session.config.agents.all.get(id) ?? session.config.agents.custom.find(({ name }) => name === id);
    if (profile === undefined || id === "general-purpose") {
      throw badParams(call.params.method, `this session has no agent ${JSON.stringify(id)} whose prompt can be changed.`);
    }
    const others = customAgents.filter(({ name }) => name !== id);
    await session.update({ customAgents: [...others, { ...toAgentOptions(profile), prompt }] });
  },
  async "agents.discover"({ server, params }) {
    const found = await Promise.all(params.texts("projectPaths").map((path) => discoverConfiguration(server, resolve(path))));
    const ofProjects = found.flatMap(({ options }) => options.customAgents ?? []).map(describeFound);
    return { agents: [...(params.flag("excludeHostAgents") ? [] : await agentsOfHost(server)), ...ofProjects] };
  },
  // The other agents come from plugins, not from folders that are searched.
  "agents.getDiscoveryPaths": ({ params }) => ({
    paths: params.texts("projectPaths").flatMap((projectPath) =>
      agentFolders.map((folder, index) => {
        return { path: join(resolve(projectPath), folder), scope: "project", preferredForCreation: index === 0, projectPath };
      }),
    ),
  }),
};

async function agentsOfHost(server: ServerContext): Promise<readonly object[]> {
  const session = await (await server.host()).createSession({ persist: false });
  try {
    return describeAll(session);
  } finally {
    await session.disconnect();
  }
}

/** An agent of a project that no session has yet. */
function describeFound({ name, displayName = name, description = "", tools, model, infer }: CustomAgentOptions): object {
  return {
    id: name,
    name,
    displayName,
    description,
    source: "project",
    ...(Array.isArray(tools) && { tools }),
    ...(model !== undefined && { model }),
    ...(infer === false && { disableModelInvocation: true }),
  };
}

/** Converts any agent, such as one of a plugin, into the form of session options. */
function toAgentOptions({ isFromPlugin: _, tools, ...profile }: AgentProfile): CustomAgentOptions {
  return { ...profile, tools: tools ?? null };
}

function sessionOf({ server, params }: Call): Session {
  return findSession(server, params).session;
}

function describeAll({ config }: Session): readonly object[] {
  return config.agents.custom.map(describe);
}

function describe({ name, displayName, description, tools, model, infer, isFromPlugin }: AgentProfile): object {
  return {
    id: name,
    name,
    displayName,
    description,
    ...(tools !== undefined && { tools }),
    ...(model !== undefined && { model }),
    ...(!infer && { disableModelInvocation: true }),
    ...(isFromPlugin && { source: "plugin" }),
  };
}

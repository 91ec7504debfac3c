import { errorMessage } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import type { ServerProbe } from "../../../mcp/oauth/probe-server.ts";
import { type ServerInfo, sourceOf } from "../../../session/mcp/server-connections.ts";
import type { Session } from "../../../session/session.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import { badParams } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The MCP servers of a session, and those that the user configured. */
export const mcp: MethodFamily = {
  async "session.mcp.list"(call) {
    const session = await started(call);
    const servers = session.mcp.list();
    return { servers: servers.map(describeServer), ...(servers.length > 0 && { host: describeHostState(servers) }) };
  },
  async "session.mcp.listTools"(call) {
    const session = await started(call);
    const server = connected(session, call.params.text("serverName"));
    return {
      tools: server.tools.map(({ nativeName, description }) => ({ name: nativeName, ...(description !== undefined && { description }) })),
    };
  },
  async "session.mcp.isServerRunning"(call) {
    const server = find(sessionOf(call), call.params.text("serverName"));
    return { running: server?.status === "connected" };
  },
  async "session.mcp.startServer"(call) {
    const session = sessionOf(call);
    const name = call.params.text("serverName");
    const config = call.params.optionalRecord("config");
    if (config !== undefined) await session.update({ mcpServers: { ...session.config.options.mcpServers, [name]: config } });
    session.mcp.start(name);
    await session.ready(call.signal());
  },
  "session.mcp.stopServer": (call) => sessionOf(call).mcp.stop(call.params.text("serverName")),
  "session.mcp.restartServer": (call) => sessionOf(call).mcp.restart(call.params.text("serverName")),
  async "session.mcp.enable"(call) {
    const session = withServers(call);
    await session.mcp.enable(call.params.text("serverName"));
  },
  async "session.mcp.disable"(call) {
    const session = withServers(call);
    await session.mcp.disable(call.params.text("serverName"));
  },
  "session.mcp.reload"(call) {
    sessionOf(call);
    throw new Error("MCP config reload not available: the servers of a session are configured when it is created.");
  },
  async "session.mcp.reloadWithConfig"(call) {
    const config = call.params.record("config");
    // The runtime's own configuration nests the servers in mcpServers, beside the list of disabled ones.
    const mcpServers = isRecord(config["mcpServers"]) ? config["mcpServers"] : config;
    await sessionOf(call).update({ mcpServers: mcpServers as SessionOptions["mcpServers"] });
    return { filteredServers: [] };
  },
  async "session.mcp.setEnvValueMode"(call) {
    const mode = call.params.text("mode");
    await sessionOf(call).update({ envValueMode: mode as "direct" | "indirect" });
    return { mode };
  },
  // Servers are always loaded in the background, so nothing has to be moved there.
  "session.mcp.moveLoadingToBackground"(call) {
    sessionOf(call);
    return { movedToBackground: false };
  },
  // The identity cannot be sent over a connection, so nothing changes.
  "session.mcp.configureGitHub"(call) {
    sessionOf(call);
    return { changed: false };
  },
  "session.mcp.removeGitHub"(call) {
    sessionOf(call);
    return { removed: false };
  },
  "session.mcp.oauth.handlePendingRequest": ({ server, client, params }) => ({
    success: findSession(server, params).answer(client, params.text("requestId"), params.record("result")),
  }),
  // A server that waits for credentials tries again with the changed ones; the others renew theirs themselves.
  "session.mcp.oauth.authenticationStateChanged"(call) {
    const session = sessionOf(call);
    const name = call.params.optionalText("serverName");
    const waiting = session.mcp.list().filter(({ status }) => status === "needs-auth");
    const changed = waiting.filter((server) => name === undefined || server.name === name);
    // The status of a server shows what its start comes to.
    for (const server of changed) void session.mcp.restart(server.name).catch(() => {});
  },
  async "session.mcp.oauth.probe"(call) {
    const session = sessionOf(call);
    const name = call.params.text("serverName");
    if (find(session, name) === undefined) throw new Error(`MCP server ${JSON.stringify(name)} is not configured.`);
    try {
      return describeProbe((await session.mcp.probe(name, call.signal()))!);
    } catch (error) {
      call.signal().throwIfAborted();
      return { status: "failed", error: errorMessage(error) };
    }
  },
  async "session.mcp.oauth.login"(call) {
    const session = sessionOf(call);
    const name = call.params.text("serverName");
    if (session.mcp.list().length === 0) throw new Error("MCP host is not available: this session has no MCP servers.");
    const server = find(session, name);
    if (server === undefined) throw new Error(`MCP server ${JSON.stringify(name)} is not configured.`);
    if (server.transport === "stdio") throw new Error(`MCP server ${JSON.stringify(name)} is not a remote server.`);
    const authorizationUrl = await session.mcp.signIn(name, { again: call.params.flag("forceReauth") });
    return authorizationUrl === undefined ? {} : { authorizationUrl };
  },
  async "session.mcp.resources.list"(call) {
    const { session, serverName } = await connectedTo(call);
    return { resources: session.offers.ofServer(serverName).resources.map(({ definition }) => definition) };
  },
  async "session.mcp.resources.listTemplates"(call) {
    const { session, serverName } = await connectedTo(call);
    return { resourceTemplates: session.offers.ofServer(serverName).resourceTemplates.map(({ definition }) => definition) };
  },
  async "session.mcp.resources.read"(call) {
    const { session, serverName } = await connectedTo(call);
    return { contents: await session.readResource(call.params.text("uri"), { serverName, signal: call.signal() }) };
  },
  async "session.mcp.executeSampling"({ server, params, signal }) {
    const session = findSession(server, params);
    const requestId = params.text("requestId");
    if (session.samplings.has(requestId)) throw badParams(params.method, `requestId ${JSON.stringify(requestId)} is in use.`);
    const stop = new AbortController();
    session.samplings.set(requestId, stop);
    try {
      const request = params.record("request");
      await chooseModel(server, session.session);
      const result = await session.session.conversation.sample(request, AbortSignal.any([stop.signal, signal()]));
      return { action: "success", result };
    } catch (error) {
      return stop.signal.aborted ? { action: "cancelled" } : { action: "failure", error: errorMessage(error) };
    } finally {
      session.samplings.delete(requestId);
    }
  },
  "session.mcp.cancelSamplingExecution"({ server, params }) {
    const running = findSession(server, params).samplings.get(params.text("requestId"));
    running?.abort();
    return { cancelled: running !== undefined };
  },
  async "mcp.discover"({ server }) {
    const all = (await server.host()).listServers();
    return {
      servers: all.map((info) => ({
        name: info.name,
        type: info.transport,
        source: sourceOf(info.origin),
        enabled: info.status !== "disabled",
      })),
    };
  },
  "mcp.config.list": async ({ server }) => ({ servers: (await server.mcpConfig()).list() }),
  async "mcp.config.add"({ server, params }) {
    await (await server.mcpConfig()).add(params.text("name"), params.record("config"));
  },
  async "mcp.config.update"({ server, params }) {
    await (await server.mcpConfig()).update(params.text("name"), params.record("config"));
  },
  async "mcp.config.remove"({ server, params }) {
    await (await server.mcpConfig()).remove(params.text("name"));
  },
  async "mcp.config.enable"({ server, params }) {
    await (await server.mcpConfig()).setDisabled(params.texts("names"), false);
  },
  async "mcp.config.disable"({ server, params }) {
    await (await server.mcpConfig()).setDisabled(params.texts("names"), true);
  },
  async "mcp.config.reload"({ server }) {
    await (await server.mcpConfig()).reload();
  },
};

function sessionOf({ server, params }: Call): Session {
  return findSession(server, params).session;
}

/** The session, after its servers have started or failed. */
async function started(call: Call): Promise<Session> {
  const session = sessionOf(call);
  await session.ready(call.signal());
  return session;
}

function withServers(call: Call): Session {
  const session = sessionOf(call);
  if (session.mcp.list().length === 0) throw new Error("No MCP host initialized: this session has no MCP servers.");
  return session;
}

function find(session: Session, name: string): ServerInfo | undefined {
  return session.mcp.list().find((server) => server.name === name);
}

function connected(session: Session, name: string): ServerInfo {
  const server = find(session, name);
  if (server?.status === "connected") return server;
  const why = server === undefined ? "this session has no server with this name" : (server.error ?? server.status);
  throw new Error(`MCP server ${JSON.stringify(name)} is not connected: ${why}.`);
}

async function connectedTo(call: Call): Promise<{ readonly session: Session; readonly serverName: string }> {
  const session = await started(call);
  return { session, serverName: connected(session, call.params.text("serverName")).name };
}

/** The answer of a server to a probe, in the form of the protocol. */
function describeProbe(probe: ServerProbe): object {
  const { response } = probe;
  const said = response && {
    statusCode: response.status,
    headers: response.headers,
    ...(response.body !== undefined && { body: response.body }),
  };
  const answered = said === undefined ? {} : { httpResponse: said };
  if (probe.kind === "failed") return { status: "failed", error: probe.message, ...answered };
  if (probe.kind === "accepted") return { status: probe.withToken ? "authenticated" : "no-auth-required", ...answered };
  return { status: "needs-auth", reason: probe.reason, wwwAuthenticateParams: probe.challenge, ...answered };
}

/** An MCP server in the form of the protocol. */
function describeServer(info: ServerInfo): object {
  const { name, status, transport, error, origin } = info;
  return {
    name,
    status,
    ...(transport !== undefined && { transport }),
    source: sourceOf(origin),
    ...(origin.kind === "plugin" && origin.source !== undefined && { sourcePlugin: origin.source }),
    ...(error !== undefined && status !== "disabled" && status !== "stopped" && { error }),
  };
}

function describeHostState(servers: readonly ServerInfo[]): object {
  const named = (status: ServerInfo["status"]): readonly string[] => servers.filter((one) => one.status === status).map(({ name }) => name);
  const timestamp = Date.now();
  const failed = servers.filter(({ status }) => status === "failed");
  return {
    mcp3pEnabled: true,
    disabledServers: named("disabled"),
    filteredServers: [],
    clients: named("connected"),
    pendingConnections: named("pending"),
    failedServers: Object.fromEntries(failed.map(({ name, error = "It failed." }) => [name, { message: error, timestamp }])),
    needsAuthServers: Object.fromEntries(named("needs-auth").map((name) => [name, { timestamp }])),
  };
}

import { appOfTool, isForApps, toListedTool, toMcpResult, toolsOfServer } from "../../../session/mcp/app-tools.ts";
import type { Session } from "../../../session/session.ts";
import type { Tool, ToolResult } from "../../../tools/tool.ts";
import type { Environment } from "../copilot-options.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

type Fields = Readonly<Record<string, unknown>>;

/** MCP Apps (SEP-1865): pages of MCP servers that a client shows, and the tools that these pages may call. */
export const apps: MethodFamily = {
  "session.mcp.apps.setHostContext"(call) {
    const session = withApps(call);
    session.hostContext = call.params.record("context");
  },
  "session.mcp.apps.getHostContext": (call) => ({ context: withApps(call).hostContext }),
  async "session.mcp.apps.listTools"(call) {
    const { session } = withApps(call);
    await session.ready(call.signal());
    return { tools: toolsOfServer(session, serverOf(call)).filter(isForApps).map(toListedTool) };
  },
  async "session.mcp.apps.callTool"(call) {
    const { session } = withApps(call);
    await session.ready(call.signal());
    const serverName = serverOf(call);
    const toolName = call.params.text("toolName");
    const tool = toolsOfServer(session, serverName).find(({ origin }) => origin.nativeName === toolName);
    if (tool === undefined || !isForApps(tool)) {
      throw new Error(`MCP server ${JSON.stringify(serverName)} has no tool ${JSON.stringify(toolName)} that its pages can call.`);
    }
    const args = call.params.optionalRecord("arguments") ?? {};
    const begun = performance.now();
    const result = await session.callTool(tool.definition.name, args, { signal: call.signal() });
    emitCompleted(session, { serverName, toolName, args, result, durationMs: performance.now() - begun, tool });
    return toMcpResult(result);
  },
  async "session.mcp.apps.readResource"(call) {
    const { session } = withApps(call);
    await session.ready(call.signal());
    const serverName = call.params.text("serverName");
    connected(session, serverName);
    return { contents: await session.readResource(call.params.text("uri"), { serverName, signal: call.signal() }) };
  },
  async "session.mcp.apps.diagnose"(call) {
    const { session, rendersApps } = findSession(call.server, call.params);
    await session.ready(call.signal());
    const serverName = call.params.text("serverName");
    const tools = toolsOfServer(session, serverName);
    const withUi = tools.filter((tool) => appOfTool(tool) !== undefined);
    return {
      // Never advertised: a server is shared by sessions, of which only some can show pages.
      capability: { sessionHasMcpApps: rendersApps, featureFlagEnabled: true, advertised: false },
      server: {
        connected: session.mcp.list().some(({ name, status }) => name === serverName && status === "connected"),
        toolCount: tools.length,
        toolsWithUiMeta: withUi.length,
        sampleToolNames: withUi.slice(0, 5).map(({ origin }) => origin.nativeName),
      },
    };
  },
};

function withApps({ server, params }: Call): CopilotSession {
  const session = findSession(server, params);
  if (session.rendersApps || isEnabled(server.options.environment)) return session;
  throw new Error("MCP Apps (mcp-apps) are not enabled for this session. Create it with requestMcpApps: true (enableMcpApps in the SDKs).");
}

/** Whether every session has pages of MCP servers, whatever its clients ask for. */
function isEnabled({ COPILOT_MCP_APPS, MCP_APPS }: Environment): boolean {
  return ["1", "true"].includes((COPILOT_MCP_APPS ?? MCP_APPS ?? "").toLowerCase());
}

/** The server of the calling page. A page may call only its own server. */
function serverOf({ params }: Call): string {
  const serverName = params.text("serverName");
  const origin = params.text("originServerName");
  if (origin === serverName) return serverName;
  throw new Error(`A page of MCP server ${JSON.stringify(origin)} must not call tools of ${JSON.stringify(serverName)}.`);
}

function connected(session: Session, name: string): void {
  if (session.mcp.list().some((server) => server.name === name && server.status === "connected")) return;
  throw new Error(`MCP server ${JSON.stringify(name)} is not connected.`);
}

interface Called {
  readonly serverName: string;
  readonly toolName: string;
  readonly args: Fields;
  readonly result: ToolResult;
  readonly durationMs: number;
  readonly tool: Tool;
}

function emitCompleted({ events }: Session, { serverName, toolName, args, result, durationMs, tool }: Called): void {
  const success = result.resultType === "success";
  const ui = appOfTool(tool);
  events.append("mcp_app.tool_call_complete", {
    serverName,
    toolName,
    arguments: args,
    success,
    durationMs,
    ...(success ? { result: toMcpResult(result) } : { error: { message: result.error ?? result.textResultForLlm } }),
    ...(ui !== undefined && { toolMeta: { ui } }),
  });
}

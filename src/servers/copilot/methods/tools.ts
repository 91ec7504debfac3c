import { isRecord } from "../../../base/json.ts";
import type { ListedTool } from "../../../session/catalog/assemble-catalog.ts";
import { badParams } from "../connection/params.ts";
import { toDeclarations } from "../request/parse-session-request.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { MethodFamily } from "./method.ts";

/** The tools of a session, and the results of the tools that clients run. */
export const tools: MethodFamily = {
  "session.tools.handlePendingToolCall"({ server, client, params }) {
    const session = findSession(server, params);
    const requestId = params.text("requestId");
    const error = params.optionalText("error");
    if (error === undefined && !params.has("result")) throw badParams(params.method, "result or error is missing.");
    return { success: session.answer(client, requestId, error === undefined ? { result: toResult(params.get("result")) } : { error }) };
  },
  "session.tools.set"({ server, client, params }) {
    const session = findSession(server, params);
    session.setTools(client, toDeclarations(params));
    return {};
  },
  async "session.tools.getCurrentMetadata"({ server, params }) {
    const session = findSession(server, params);
    await session.session.ready();
    const deferred = new Map(session.session.listTools().map((tool) => [tool.name, tool.deferred]));
    return { tools: session.session.listTools().map((tool) => toMetadata(tool, session, deferred)) };
  },
  async "session.tools.initializeAndValidate"({ server, params }) {
    await findSession(server, params).session.ready();
    return {};
  },
  async "session.tools.execute"({ server, params, signal }) {
    const { session } = findSession(server, params);
    const name = params.optionalText("toolName") ?? params.text("name");
    const toolCallId = params.optionalText("toolCallId");
    return session.callTool(name, params.get("arguments") ?? params.get("args"), {
      signal: signal(),
      ...(toolCallId !== undefined && { toolCallId }),
    });
  },
  async "session.tools.getBuiltinDescriptors"({ server, params }) {
    const { session } = findSession(server, params);
    await session.ready();
    return {
      tools: session
        .listTools()
        .filter(({ source }) => source.kind === "builtin")
        .map(toDescriptor),
    };
  },
  "session.tools.taskCompleteEventData"({ server, params }) {
    findSession(server, params);
    const { summary } = params.optionalRecord("toolArgs") ?? {};
    return describeCompletion(params.record("finalResult"), summary);
  },
  async "tools.list"({ server }) {
    // The tools that every session of this server has, without a session's own options.
    const host = await server.host();
    const session = await host.createSession({ persist: false });
    try {
      await session.ready();
      return { tools: session.listTools().map(toListed) };
    } finally {
      await session.disconnect();
    }
  },
};

/** The data of `session.task_complete` for a finished call of the tool that completes a task. */
function describeCompletion({ resultType, taskCompletionDecision }: Readonly<Record<string, unknown>>, summary: unknown): object {
  const decision = isRecord(taskCompletionDecision) ? taskCompletionDecision : {};
  const outcome = outcomes.find((known) => known === decision["outcome"]);
  const { reason, reviewerDerived, objectiveId } = decision;
  return {
    summary: typeof summary === "string" ? summary : "",
    success: resultType === "success" && (outcome === undefined || outcome === "completed"),
    ...(outcome !== undefined && { outcome }),
    // What a reviewer wrote may be confidential, unlike the event.
    ...(typeof reason === "string" && reviewerDerived !== true && { reason }),
    ...(Number.isSafeInteger(objectiveId) && { objectiveId }),
  };
}

const outcomes = ["completed", "continue", "blocked"] as const;

/** Clients of the Copilot SDK send an empty text for a result without content; it does not mean that the result is missing. */
function toResult(result: unknown): unknown {
  if (result === undefined || result === "") return { textResultForLlm: "", resultType: "success" };
  if (!isRecord(result)) return result;
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null));
}

function toListed({ name, namespacedName, description, parameters, source, deferred, signature }: ListedTool): object {
  return {
    name,
    ...(namespacedName !== undefined && { namespacedName }),
    description: description ?? "",
    ...(parameters !== undefined && { parameters }),
    source,
    deferred,
    signature,
  };
}

function toDescriptor({ name, description, parameters }: ListedTool): object {
  return {
    name,
    title: null,
    description: description ?? "",
    inputSchema: parameters ?? null,
    instructions: null,
    type: null,
    format: null,
    safeForTelemetry: false,
    isTerminal: false,
    hasSummariseIntention: false,
  };
}

function toMetadata(tool: ListedTool, { session }: CopilotSession, deferred: ReadonlyMap<string, boolean>): object {
  const origin = session.catalog.executables.get(tool.name)?.origin;
  const { name, namespacedName, description, parameters } = tool;
  return {
    name,
    ...(namespacedName !== undefined && { namespacedName }),
    description: description ?? "",
    ...(parameters !== undefined && { input_schema: parameters }),
    ...(origin?.kind === "mcp" && { mcpServerName: origin.source, mcpToolName: origin.nativeName }),
    deferLoading: deferred.get(name) === true,
  };
}

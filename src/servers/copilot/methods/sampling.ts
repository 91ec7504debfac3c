import { errorMessage } from "../../../base/errors.ts";
import { badParams } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { MethodFamily } from "./method.ts";

/** What MCP servers want models to write, when a client has decided that the session's model does. */
export const sampling: MethodFamily = {
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
};

import { createMcpHandler, isJsonContentType, isLegacyRequest } from "@modelcontextprotocol/server";
import { hasTooManyValues, isNestedTooDeep, maxJsonDepth, maxJsonValues } from "../../base/json-limits.ts";
import type { Logger } from "../../base/logger.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { onAbort } from "../../base/wait-for.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import type { Face, OpenFace } from "./face.ts";
import { type LegacySessionLimits, LegacySessions } from "./legacy-sessions.ts";
import { ListenedResources } from "./listened-resources.ts";
import { disagreeingHeader } from "./param-headers.ts";

/** Answers what got past the guard. */
export interface HttpRoutes extends AsyncDisposable {
  fetch(request: Request): Promise<Response>;
}

/**
 * One address for both eras: requests of revision 2026-07-28 each say what they are and share a session of the host;
 * earlier clients begin one of their own with `initialize`.
 */
export async function createHttpRoutes(face: Face, limits: LegacySessionLimits, log: Logger): Promise<HttpRoutes> {
  const shared = await face.open({ isShared: true });
  const { notify, fetch, close } = createMcpHandler(() => createMcpServer(shared.parts, "modern"), {
    legacy: "reject",
    onerror: (error) => log.debug("A request of an MCP client was refused.", { error }),
  });
  const tell = { tools: notify.toolsChanged, prompts: notify.promptsChanged, resources: notify.resourcesChanged };
  const news = shared.served.onChanged((list) => tell[list]());
  const listened = new ListenedResources(shared.watches, notify.resourceUpdated);
  const sessions = new LegacySessions(() => face.connect(), limits, log);
  return {
    async fetch(request) {
      const body = await readBody(request);
      if (body instanceof Response) return body;
      if (await isLegacyRequest(request, body)) return sessions.fetch(request, body);
      const header = parameterFault(body, request.headers, shared);
      if (header !== undefined) return refuse(400, -32020, `The header ${header} and the arguments disagree.`, body);
      const listening = listened.add(body);
      if (listening !== undefined) onAbort(request.signal, () => listening[Symbol.dispose]());
      return fetch(request, { parsedBody: body });
    },
    async [Symbol.asyncDispose]() {
      news[Symbol.dispose]();
      await Promise.all([close(), sessions[Symbol.asyncDispose]()]);
      await shared[Symbol.asyncDispose]();
    },
  };
}

/** The parsed body; undefined for requests without one; a response where it cannot be read. */
async function readBody(request: Request): Promise<unknown> {
  if (request.method !== "POST") return undefined;
  if (!isJsonContentType(request.headers.get("content-type"))) return refuse(415, -32000, "Content-Type must be application/json.");
  const bytes = Buffer.from(await request.arrayBuffer());
  if (hasTooManyValues(bytes)) return refuse(413, -32600, `Invalid Request: it holds more than ${maxJsonValues} values.`);
  try {
    const body: unknown = JSON.parse(bytes.toString("utf8"));
    if (!isNestedTooDeep(body)) return body;
  } catch {
    return refuse(400, -32700, "Parse error: the body is not JSON.");
  }
  return refuse(400, -32600, `Invalid Request: it is nested more than ${maxJsonDepth} levels deep.`);
}

function parameterFault(body: unknown, headers: Headers, { served }: OpenFace): string | undefined {
  if (!isPlainRecord(body) || body["method"] !== "tools/call" || !isPlainRecord(body["params"])) return undefined;
  const { name, arguments: args } = body["params"];
  const tool = typeof name === "string" ? served.session.catalog.executables.get(name) : undefined;
  return tool?.definition.parameters && disagreeingHeader(tool.definition.parameters, args, headers);
}

function refuse(status: number, code: number, message: string, body?: unknown): Response {
  const id = isPlainRecord(body) && (typeof body["id"] === "string" || typeof body["id"] === "number") ? body["id"] : null;
  return Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status });
}

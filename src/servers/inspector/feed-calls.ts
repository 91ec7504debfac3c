import { randomUUID } from "node:crypto";
import { errorMessage, HostError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Host } from "../../host/host.ts";
import { appAddressOf } from "../../session/mcp/app-tools.ts";
import type { Session } from "../../session/session.ts";
import type { Progress, Tool, ToolResult } from "../../tools/tool.ts";
import { toFeedJson, toFeedRecord } from "./feed-json.ts";
import type { FeedCall, FeedResult } from "./feed-messages.ts";
import type { WatchedHost } from "./watched-host.ts";
import { inspectorClient } from "./watched-session.ts";

const maxRunning = 200;
const maxLogs = 500;
/** Results that a page can show are kept whole for this many calls. */
const maxWithApp = 20;

interface CallWithApp {
  readonly session: Session;
  readonly tool: Tool;
  readonly address: string;
  readonly args: Json;
  readonly result: ToolResult;
}

/** The calls that readers of a feed begin. */
export class FeedCalls implements AsyncDisposable {
  readonly #host: Host;
  readonly #watched: WatchedHost;
  readonly #running = new Map<string, AbortController>();
  readonly #withApp = new Map<string, CallWithApp>();
  #session: Promise<Session> | undefined;

  constructor(host: Host, watched: WatchedHost) {
    this.#host = host;
    this.#watched = watched;
  }

  /**
   * Begins a call, in a session or in one of the inspector's own. Its state follows as messages.
   * @throws HostError `INSPECTOR_BUSY`, `SESSION_NOT_FOUND`
   */
  async begin(tool: string, args: Json, sessionId?: string): Promise<{ readonly callId: string; readonly ended: Promise<FeedCall> }> {
    if (this.#running.size >= maxRunning)
      throw new HostError("INSPECTOR_BUSY", `${maxRunning} calls are running. Cancel some of them first.`);
    const session = sessionId === undefined ? await this.session() : this.#find(sessionId);
    const { name = tool } = this.#watched.catalog.find(tool) ?? {};
    const id = randomUUID();
    const controller = new AbortController();
    this.#running.set(id, controller);
    const shown: FeedCall = {
      id,
      tool: name,
      arguments: toFeedRecord(args, this.#watched.blobs),
      state: "running",
      startTime: new Date().toISOString(),
      logs: [],
    };
    this.#watched.showCall(shown);
    const ended = this.#run({ session, name, args, controller, shown }).finally(() => this.#running.delete(id));
    return { callId: id, ended };
  }

  /** A tool as the inspector's own session would call it. @throws HostError `TOOL_UNKNOWN` */
  async tool(idOrName: string): Promise<Tool> {
    const session = await this.session();
    await session.ready();
    const { name = idOrName } = this.#watched.catalog.find(idOrName) ?? {};
    const tool = session.catalog.executables.get(name);
    if (tool === undefined) throw new HostError("TOOL_UNKNOWN", `No tool ${JSON.stringify(idOrName)} can be called.`);
    return tool;
  }

  /** A call that has ended, and whose result a page shows. */
  withApp(callId: string): CallWithApp | undefined {
    return this.#withApp.get(callId);
  }

  /** False: no such call is running. */
  cancel(callId: string): boolean {
    const controller = this.#running.get(callId);
    controller?.abort(new DOMException("The call was cancelled in the inspector.", "AbortError"));
    return controller !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const callId of [...this.#running.keys()]) this.cancel(callId);
    const session = await this.#session?.catch(() => undefined);
    await session?.disconnect();
  }

  /** Never rejects: whatever goes wrong is the result. */
  async #run({ session, name, args, controller, shown }: RunParts): Promise<FeedCall> {
    const { blobs } = this.#watched;
    const started = performance.now();
    let call = shown;
    const show = (change: Partial<FeedCall>): void => {
      call = { ...call, ...change };
      this.#watched.showCall(call);
    };
    const showLater = onceATurn(() => {
      if (call.state === "running") show({});
    });
    const onProgress = (update: Progress): void => {
      if (update.level === undefined) call = { ...call, progress: toProgress(update) };
      else if (call.logs.length < maxLogs) call = { ...call, logs: [...call.logs, lineOf(update, blobs)] };
      showLater();
    };
    try {
      const result = await session.callTool(name, args, { toolCallId: shown.id, signal: controller.signal, onProgress });
      const state = controller.signal.aborted ? "cancelled" : "completed";
      const hasApp = this.#keepForApp(shown.id, { session, name, args, result });
      show({ state, durationMs: performance.now() - started, result: toFeedResult(result, this.#watched), ...(hasApp && { hasApp }) });
    } catch (error) {
      const message = errorMessage(error);
      const failed = { ok: false, code: error instanceof HostError ? error.code : "failure", text: message, content: [] };
      show({ state: "completed", durationMs: performance.now() - started, result: failed });
    }
    return call;
  }

  #keepForApp(
    callId: string,
    { session, name, args, result }: Pick<RunParts, "session" | "name" | "args"> & { result: ToolResult },
  ): boolean {
    const tool = session.isOpen ? session.catalog.executables.get(name) : undefined;
    const address = tool?.origin.kind === "mcp" ? appAddressOf(tool) : undefined;
    if (tool === undefined || address === undefined) return false;
    this.#withApp.set(callId, { session, tool, address, args, result });
    for (const id of this.#withApp.keys()) if (this.#withApp.size > maxWithApp) this.#withApp.delete(id);
    return true;
  }

  #find(sessionId: string): Session {
    const found = this.#host.openSessions.find(({ session }) => session.id === sessionId);
    if (found === undefined) throw new HostError("SESSION_NOT_FOUND", `Session ${JSON.stringify(sessionId)} is not open.`);
    return found.session;
  }

  /** The inspector's own session: one for all calls, so that an approval for the session holds for later ones. */
  async session(): Promise<Session> {
    const known = await this.#session?.catch(() => undefined);
    if (known?.isOpen === true) return known;
    // Long results are shown whole.
    const options = { persist: false, largeOutput: { enabled: false } };
    this.#session = this.#host.createSession(options, { client: inspectorClient });
    return this.#session;
  }
}

interface RunParts {
  readonly session: Session;
  readonly name: string;
  readonly args: Json;
  readonly controller: AbortController;
  readonly shown: FeedCall;
}

export function toFeedResult(result: ToolResult, { blobs }: Pick<WatchedHost, "blobs">): FeedResult {
  const { resultType, textResultForLlm, structuredContent, contents, binaryResultsForLlm, error } = result;
  const content = contents ?? binaryResultsForLlm ?? [];
  return {
    ok: resultType === "success",
    code: resultType,
    text: toFeedJson(textResultForLlm, blobs) as FeedResult["text"],
    ...(structuredContent !== undefined && { structured: toFeedJson(structuredContent, blobs) as Json }),
    content: content.map((block) => toFeedRecord(block, blobs)),
    ...(error !== undefined && { error: String(toFeedJson(error.slice(0, 10_000), blobs)) }),
  };
}

/** Runs something once for all requests of a turn of the event loop: a tool may report thousands of steps in one. */
function onceATurn(run: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      run();
    });
  };
}

function toProgress({ progress = 0, total, message }: Progress): NonNullable<FeedCall["progress"]> {
  return { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message: message.slice(0, 1_000) }) };
}

function lineOf({ level, message, data }: Progress, blobs: WatchedHost["blobs"]): string {
  const shown = data === undefined ? "" : ` ${JSON.stringify(toFeedJson(data, blobs))}`;
  return `${level} ${String(toFeedJson(message ?? "", blobs))}${shown}`.slice(0, 2_000);
}

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const platform = `${process.platform}-${process.arch}`;
/** The program that the SDK starts unless it is given another one. */
const officialPath = here(`../peers/copilot/node_modules/@github/copilot-sdk-${platform}/prebuilds/${platform}/copilot-runtime`);
const headless = ["--headless", "--no-auto-update", "--log-level", "error", "--stdio"];

export const ours = { name: "skillhost", command: process.execPath, args: [here("../../dist/cli/bin.js"), ...headless] };
export const bare = { name: "a bare JSON-RPC server", command: process.execPath, args: [here("../peers/jsonrpc-ping.mjs")] };
export const official = { name: "the official runtime", command: officialPath, args: headless };
export const hasOfficial = existsSync(officialPath);
export const runtimes = hasOfficial ? [ours, official] : [ours];

/**
 * A runtime in a process of its own and a client of it. The client answers every hook with nothing, every permission with
 * yes and every call of a tool with a short text, at once.
 */
export class Runtime {
  #waiting = new Set();

  constructor(which, { base, modelUrl }) {
    const folder = workingFolder(base);
    this.workingDirectory = folder;
    this.child = spawn(which.command, [...which.args, "--auth-token-env", "BENCH_TOKEN", "--no-auto-login"], {
      cwd: folder,
      env: { ...environmentOf(which, { base, modelUrl }), BENCH_TOKEN: "token-of-the-bench" },
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.child.stdin.on("error", () => {});
    const { stdout, stdin } = this.child;
    this.connection = createMessageConnection(new StreamMessageReader(stdout), new StreamMessageWriter(stdin));
    this.connection.onRequest("hooks.invoke", () => ({}));
    this.connection.onNotification("session.event", ({ sessionId, event }) => this.#take(sessionId, event));
    this.connection.onUnhandledNotification(() => {});
    this.connection.listen();
  }

  request(method, params = {}) {
    return this.connection.sendRequest(method, params);
  }

  /** Up to the answer to a first ping. */
  async ping() {
    await this.request("connect", {});
    return this.request("ping", { message: "bench" });
  }

  async create(options = {}) {
    const { sessionId } = await this.request("session.create", { ...sdkDefaults, workingDirectory: this.workingDirectory, ...options });
    return sessionId;
  }

  /** The next event that fits. */
  event(fits) {
    return new Promise((resolve) => {
      const look = (event, sessionId) => {
        if (!fits(event, sessionId)) return;
        this.#waiting.delete(look);
        resolve(event);
      };
      this.#waiting.add(look);
    });
  }

  async say(sessionId, prompt) {
    const idle = this.event(({ type }, id) => id === sessionId && type === "session.idle");
    await this.request("session.send", { sessionId, prompt });
    await idle;
  }

  /** Megabytes that the process holds; undefined where there is no way to know. */
  get residentMegabytes() {
    if (process.platform !== "linux") return undefined;
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.child.pid}/status`, "utf8"))[1]) / 1024;
  }

  async end() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.connection.dispose();
    this.child.stdin.end();
    this.child.kill("SIGKILL");
    await ended;
  }

  #take(sessionId, event) {
    for (const look of [...this.#waiting]) look(event, sessionId);
    const { type, data } = event;
    const answer = (method, result) => this.request(method, { sessionId, requestId: data.requestId, result }).catch(() => {});
    if (type === "external_tool.requested") void answer("session.tools.handlePendingToolCall", "Done.");
    if (type === "permission.requested" && data.resolvedByHook !== true)
      void answer("session.permissions.handlePendingPermissionRequest", { kind: "approve-once" });
  }
}

export function workingFolder(base) {
  const folder = join(base, "work");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** The variables of a runtime's process, which must not use what belongs to the user of this machine. */
export function environmentOf(which, { base, modelUrl }) {
  const { GH_TOKEN: _gh, GITHUB_TOKEN: _github, ...environment } = process.env;
  return {
    ...environment,
    COPILOT_HOME: join(base, "home"),
    // Shared by the processes of one run, and empty at its start.
    ...(which === ours && { XDG_CACHE_HOME: join(dirname(base), "cache") }),
    COPILOT_API_URL: modelUrl,
    COPILOT_DEBUG_GITHUB_API_URL: modelUrl,
  };
}

const sdkDefaults = {
  model: "claude-sonnet-4.5",
  toolFilterPrecedence: "excluded",
  requestPermission: true,
  requestUserInput: false,
  requestElicitation: false,
  requestExitPlanMode: false,
  requestAutoModeSwitch: false,
  hooks: false,
  includeSubAgentStreamingEvents: true,
  envValueMode: "direct",
};

/**
 * An endpoint that has a tool called so and so many times in each turn, and notes how long each runtime takes from an
 * answer to its next request.
 */
export async function startModel() {
  const gaps = [];
  let plan = { rounds: 0, name: "" };
  let round = 0;
  let answeredAt;
  let requested = () => {};
  const server = createServer(async (request, response) => {
    const arrived = performance.now();
    let text = "";
    for await (const piece of request) text += piece;
    response.setHeader("content-type", "application/json");
    if (!request.url.endsWith("/chat/completions")) return void response.end(JSON.stringify(lookUp(request.url)));
    requested(arrived);
    if (answeredAt !== undefined) gaps.push(arrived - answeredAt);
    const isCall = round++ < plan.rounds;
    const body = JSON.stringify(completion(JSON.parse(text).model, isCall ? { name: plan.name, id: `call-${round}` } : undefined));
    answeredAt = isCall ? performance.now() : undefined;
    response.end(body);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Has the next turn call a tool; gives the milliseconds of each round when that turn is over. */
    begin(rounds, name) {
      plan = { rounds, name };
      round = 0;
      gaps.length = 0;
      answeredAt = undefined;
      return () => [...gaps];
    },
    /** The time at which the next request for a completion arrives. */
    nextRequest() {
      return new Promise((resolve) => {
        requested = resolve;
      });
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function completion(model, call) {
  const toolCall = call && { id: call.id, type: "function", function: { name: call.name, arguments: '{"text":"hello"}' } };
  const message = { role: "assistant", content: call ? null : "Done.", ...(call && { tool_calls: [toolCall] }) };
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  return {
    id: "bench",
    object: "chat.completion",
    model,
    choices: [{ index: 0, message, finish_reason: call ? "tool_calls" : "stop" }],
    usage,
  };
}

function lookUp(path) {
  if (path.startsWith("/copilot_internal/user")) return { login: "bench", copilot_plan: "individual_pro", is_mcp_enabled: true };
  if (path.startsWith("/models")) return { data: [theModel] };
  return {};
}

const theModel = {
  id: "claude-sonnet-4.5",
  name: "Claude",
  vendor: "Anthropic",
  version: "1",
  object: "model",
  model_picker_enabled: true,
  capabilities: {
    type: "chat",
    family: "claude-sonnet-4.5",
    object: "model_capabilities",
    tokenizer: "o200k_base",
    supports: { tool_calls: true, parallel_tool_calls: true, streaming: true },
    limits: { max_context_window_tokens: 200_000, max_prompt_tokens: 128_000, max_output_tokens: 8_000 },
  },
};

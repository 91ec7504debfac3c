import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chatChunks, type ScriptedReply, sse } from "../scripted-model.ts";

/** The response of the backend to a request to the model. */
export type ModelStep = PacedReply | { readonly status: number; readonly headers?: Readonly<Record<string, string>> } | "silence";

/** A reply. With `pace`, it waits for a promise after each word. */
type PacedReply = ScriptedReply & { readonly pace?: () => Promise<unknown> };

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
type Body = any;

/**
 * A loopback double of the GitHub backend of the Copilot language server. It issues a token without rights and lists one
 * model, which sends scripted answers.
 */
export interface LoopbackBackend extends AsyncDisposable {
  /** Environment variables that make a language server connect to this backend only. */
  environment(home: string): Readonly<Record<string, string>>;
  /** The bodies of the requests to the model, except those for suggestions. */
  readonly asked: readonly Body[];
  /** Adds answers for the next requests to the model, in order. */
  answer(...steps: readonly ModelStep[]): void;
  /** Drops the answers that were not used. */
  forget(): void;
  /** Signs the user out. */
  refuse(): void;
}

const modelId = "gpt-4.1";

/** `script` answers when no answer was added. */
export async function startLoopbackBackend(script: () => ScriptedReply | undefined = () => undefined): Promise<LoopbackBackend> {
  const asked: Body[] = [];
  const steps: ModelStep[] = [];
  let isRefusing = false;
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const body = await read(request);
      // Without this header the server assumes that a proxy sent the answer.
      response.setHeader("x-github-request-id", "0000:0000");
      const path = (request.url ?? "").split("?")[0]!;
      if (isRefusing && path.startsWith("/copilot_internal")) return json(response, { message: "Bad credentials" }, 401);
      if (path === "/chat/completions") return converse(body, response);
      const known = answers(path, `http://127.0.0.1:${port}`);
      json(response, known ?? { message: "Not Found" }, known === undefined ? 404 : 200);
    };
    serve().catch(() => response.destroy());
  });
  const converse = async (body: Body, response: ServerResponse): Promise<void> => {
    if (body.tool_choice?.function?.name !== undefined) return reply(response, { content: "none" });
    asked.push(body);
    const step = steps.shift() ?? script() ?? { content: "There is nothing more to say." };
    if (step === "silence") return;
    if ("status" in step) json(response, { error: { message: "scripted" } }, step.status, step.headers);
    else await reply(response, step);
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    asked,
    environment: (home) => environmentFor(home, `http://127.0.0.1:${port}`),
    answer: (...more) => void steps.push(...more),
    forget: () => void steps.splice(0),
    refuse: () => {
      isRefusing = true;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Variables that the server reads. Proxy variables are left out: the server would use a proxy even for loopback. */
function environmentFor(home: string, url: string): Readonly<Record<string, string>> {
  return {
    HOME: home,
    // The server unpacks parts of itself there, and never removes them.
    TMPDIR: home,
    XDG_CONFIG_HOME: `${home}/config`,
    XDG_CACHE_HOME: `${home}/cache`,
    XDG_DATA_HOME: `${home}/data`,
    XDG_STATE_HOME: `${home}/state`,
    PATH: process.env["PATH"] ?? "",
    GH_COPILOT_TOKEN: "ghu_fake",
    GH_COPILOT_USER: "fake-user",
    GH_COPILOT_API_URL: url,
    GH_COPILOT_SERVER_URL: url,
    GITHUB_COPILOT_OVERRIDE_CAPI_URL: url,
    GITHUB_COPILOT_OVERRIDE_PROXY_URL: url,
  };
}

function answers(path: string, url: string): object | undefined {
  const endpoints = { api: url, proxy: url, telemetry: url, "origin-tracker": url };
  const until = Math.floor(Date.now() / 1000) + 3600;
  switch (path) {
    case "/copilot_internal/v2/token":
      return {
        token: `tid=fake;exp=${until};chat=1;mcp=1;agent_mode=1`,
        expires_at: until,
        refresh_in: 1500,
        chat_enabled: true,
        endpoints,
      };
    case "/copilot_internal/user":
      return { login: "fake-user", copilot_plan: "business", chat_enabled: true, cli_enabled: true, endpoints };
    case "/models":
      return { data: [theModel] };
    case "/agents":
      return { agents: [] };
    case "/telemetry":
      // A GET request to this path asks for the assignment of experiments.
      return { Features: [], Flights: {}, Configs: [{ Id: "vscode", Parameters: {} }], ParameterGroups: null, AssignmentContext: "" };
    default:
      return undefined;
  }
}

const theModel = {
  id: modelId,
  name: "GPT-4.1",
  object: "model",
  vendor: "fake",
  version: modelId,
  preview: false,
  is_chat_default: true,
  is_chat_fallback: true,
  model_picker_enabled: true,
  policy: { state: "enabled", terms: "" },
  supported_endpoints: ["/chat/completions"],
  capabilities: {
    type: "chat",
    family: modelId,
    object: "model_capabilities",
    tokenizer: "o200k_base",
    limits: { max_context_window_tokens: 128_000, max_prompt_tokens: 100_000, max_output_tokens: 16_000 },
    supports: { streaming: true, tool_calls: true, parallel_tool_calls: true },
  },
};

async function reply(response: ServerResponse, { pace, ...scripted }: PacedReply): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of chatChunks({ model: modelId, ...scripted })) {
    response.write(sse(chunk));
    await pace?.();
  }
  response.end(sse("[DONE]"));
}

function json(response: ServerResponse, body: object, status = 200, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

async function read(request: IncomingMessage): Promise<Body> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  try {
    return JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    // The request has no body, or one that no test reads.
    return undefined;
  }
}

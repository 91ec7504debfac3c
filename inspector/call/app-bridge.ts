import type { FeedApp } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";

/** Of MCP Apps, SEP-1865. */
const protocolVersion = "2026-01-26";
/** Requests of an app that are answered at the same time. */
const maxPending = 50;
const longestHeight = 900;
/** More messages between two looks at the clock are a flood, which would keep the page from working. */
const flood = 2_000;
const floodMs = 100;

interface AppEvents {
  /** What the app did or said, for the user. */
  onLog(text: string): void;
  onHeight(pixels: number): void;
  /** It sends more than the page can take, and is not listened to any more. */
  onFlood(): void;
  /** Whether the user opens an address. */
  askToOpen(url: string): Promise<boolean>;
}

type Fields = Readonly<Record<string, unknown>>;

/** The errors of JSON-RPC 2.0. */
const methodNotFound = -32_601;
const invalidParams = -32_602;
const refused = -32_000;

/** Talks with an app in a frame, as the host of its protocol. Everything that comes from it is a stranger's. */
export class AppBridge {
  readonly #app: FeedApp;
  readonly #frame: HTMLIFrameElement;
  readonly #events: AppEvents;
  #pending = 0;
  #received = 0;

  constructor(app: FeedApp, frame: HTMLIFrameElement, events: AppEvents) {
    this.#app = app;
    this.#frame = frame;
    this.#events = events;
    addEventListener("message", this.#receive);
  }

  close(): void {
    removeEventListener("message", this.#receive);
    // The app is removed with its frame: there is nothing to wait for.
    this.#send({ id: "teardown", method: "ui/resource-teardown", params: { reason: "The user closed it." } });
  }

  readonly #receive = ({ source, data }: MessageEvent<unknown>): void => {
    if (source !== this.#frame.contentWindow) return;
    if (this.#received++ === 0) setTimeout(() => (this.#received = 0), floodMs);
    if (this.#received > flood) {
      removeEventListener("message", this.#receive);
      this.#events.onFlood();
      return;
    }
    if (!isFields(data) || data["jsonrpc"] !== "2.0") return;
    const { id, method } = data;
    if (typeof method !== "string") return;
    const params = isFields(data["params"]) ? data["params"] : {};
    if (typeof id === "string" || typeof id === "number") void this.#answer(id, method, params);
    else this.#hear(method, params);
  };

  async #answer(id: string | number, method: string, params: Fields): Promise<void> {
    if (this.#pending >= maxPending) return this.#refuse(id, refused, `${maxPending} requests are open already.`);
    this.#pending++;
    try {
      const result = await this.#run(method, params);
      if (result === undefined) this.#refuse(id, methodNotFound, `${method} is not answered here.`);
      else this.#send({ id, result });
    } catch (error) {
      this.#refuse(id, error instanceof InvalidParams ? invalidParams : refused, error instanceof Error ? error.message : String(error));
    } finally {
      this.#pending--;
    }
  }

  /** Undefined: there is no such method. */
  async #run(method: string, params: Fields): Promise<object | undefined> {
    const { appId } = this.#app;
    switch (method) {
      case "ping":
        return {};
      case "ui/initialize":
        return this.#describeHost();
      case "tools/call": {
        const tool = textOf(params, "name");
        this.#events.onLog(`calls ${tool}`);
        return requestHost("app.call", { appId, tool, arguments: isFields(params["arguments"]) ? params["arguments"] : {} });
      }
      case "resources/read": {
        const uri = textOf(params, "uri");
        this.#events.onLog(`reads ${uri}`);
        return requestHost("app.read", { appId, uri });
      }
      case "ui/open-link": {
        const url = textOf(params, "url");
        if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) throw new InvalidParams("url must be an address of http or https.");
        if (!(await this.#events.askToOpen(new URL(url).href))) throw new Error("The user did not open it.");
        return {};
      }
      case "ui/message":
      case "ui/update-model-context":
        // There is no conversation: the user sees what a model would get.
        this.#events.onLog(`${method === "ui/message" ? "says" : "tells the model"} ${JSON.stringify(params)}`);
        return {};
      case "ui/request-display-mode":
        return { mode: "inline" };
      default:
        return undefined;
    }
  }

  #hear(method: string, params: Fields): void {
    if (method === "ui/notifications/initialized") this.#sendResult();
    else if (method === "ui/notifications/size-changed") this.#resize(params["height"]);
    else if (method === "notifications/message") this.#events.onLog(`logs ${JSON.stringify(params)}`);
  }

  #sendResult(): void {
    const { arguments: given, result } = this.#app;
    this.#send({ method: "ui/notifications/tool-input", params: { arguments: given } });
    this.#send({ method: "ui/notifications/tool-result", params: result });
  }

  #resize(height: unknown): void {
    if (typeof height === "number" && Number.isFinite(height))
      this.#events.onHeight(Math.max(40, Math.min(longestHeight, Math.ceil(height))));
  }

  #describeHost(): object {
    const { domains, tool } = this.#app;
    return {
      protocolVersion,
      hostInfo: { name: "skillhost inspector", version: "1" },
      hostCapabilities: {
        openLinks: {},
        serverTools: {},
        serverResources: {},
        logging: {},
        sandbox: { csp: { connectDomains: domains.connect, resourceDomains: domains.resource, frameDomains: domains.frame } },
      },
      hostContext: {
        toolInfo: { tool },
        theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
        displayMode: "inline",
        availableDisplayModes: ["inline"],
        containerDimensions: { width: this.#frame.clientWidth, maxHeight: longestHeight },
        locale: navigator.language,
        timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        platform: "web",
      },
    };
  }

  #refuse(id: string | number, code: number, message: string): void {
    this.#send({ id, error: { code, message } });
  }

  #send(message: object): void {
    // The origin of a sandboxed frame has no name. Its document is the app: its policy lets it load no other.
    this.#frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }
}

class InvalidParams extends Error {}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(params: Fields, name: string): string {
  const text = params[name];
  if (typeof text !== "string") throw new InvalidParams(`${name} must be a text.`);
  return text;
}

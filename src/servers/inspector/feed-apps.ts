import { randomUUID } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { appMimeType } from "../../mcp/views/app-address.ts";
import { isForApps, toListedTool, toMcpResult, toolsOfServer } from "../../session/mcp/app-tools.ts";
import type { Session } from "../../session/session.ts";
import type { FeedCalls } from "./feed-calls.ts";
import type { FeedApp } from "./feed-messages.ts";

/** Pages that were opened before these are closed. */
const maxOpen = 20;
const maxBytes = 8 * 1024 * 1024;
const maxDomains = 50;
// Nothing that ends a source of a policy, or begins another one.
const sourcePattern = /^(?:https?|wss?):\/\/(?:\*\.)?[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*(?::\d{1,5})?$/;

interface OpenApp {
  readonly session: Session;
  readonly server: string;
  readonly html: string;
  readonly domains: FeedApp["domains"];
}

/** A page, and the policy under which a browser may show it. */
export interface ServedApp {
  readonly html: string;
  readonly policy: string;
}

/** The pages of MCP servers that show results of their tools (MCP Apps, SEP-1865 of 2026-01-26). */
export class FeedApps {
  readonly #calls: FeedCalls;
  readonly #open = new Map<string, OpenApp>();

  constructor(calls: FeedCalls) {
    this.#calls = calls;
  }

  /**
   * Fetches the page for the result of a call.
   * @throws HostError `APP_UNKNOWN` when the call has none, `APP_INVALID` when its server does not deliver a page; those of reading
   */
  async open(callId: string): Promise<FeedApp> {
    const call = this.#calls.withApp(callId);
    if (call === undefined) throw new HostError("APP_UNKNOWN", "This call has no page, or is too old. Make it again.");
    const { session, tool, address, args, result } = call;
    const server = tool.origin.source;
    const contents = await session.readResource(address, { serverName: server });
    const page = contents.find(({ mimeType }) => mimeType?.replaceAll(" ", "").toLowerCase() === appMimeType);
    const html = page?.text ?? (page?.blob === undefined ? undefined : Buffer.from(page.blob, "base64").toString("utf8"));
    if (html === undefined)
      throw new HostError("APP_INVALID", `${address} of the MCP server "${server}" is not a page: it needs the type ${appMimeType}.`);
    if (Buffer.byteLength(html) > maxBytes) throw new HostError("APP_INVALID", `The page ${address} is larger than ${maxBytes} bytes.`);
    const appId = randomUUID();
    const domains = domainsOf(page as unknown as Json);
    this.#open.set(appId, { session, server, html, domains });
    for (const id of this.#open.keys()) if (this.#open.size > maxOpen) this.#open.delete(id);
    return { appId, server, address, domains, tool: toListedTool(tool), arguments: args, result: toMcpResult(result) };
  }

  /** `allowsDomains`: a person allows the addresses that the page names. Undefined: it is not open any more. */
  page(appId: string, allowsDomains: boolean): ServedApp | undefined {
    const app = this.#open.get(appId);
    return app === undefined ? undefined : { html: app.html, policy: policyOf(allowsDomains ? app.domains : {}) };
  }

  /** Calls a tool for a page: only one of its own server that is for pages. It asks for permission like any other call. */
  async call(appId: string, name: string, args: Json): Promise<Json> {
    const { session, server } = this.#find(appId);
    const tool = toolsOfServer(session, server).find(({ origin }) => origin.nativeName === name);
    if (tool === undefined || !isForApps(tool))
      throw new HostError("APP_TOOL", `The MCP server "${server}" has no tool ${JSON.stringify(name)} that its pages can call.`);
    return toMcpResult(await session.callTool(tool.definition.name, args));
  }

  /** Reads a resource of the page's own server. */
  async read(appId: string, uri: string): Promise<Json> {
    const { session, server } = this.#find(appId);
    return { contents: await session.readResource(uri, { serverName: server }) };
  }

  #find(appId: string): OpenApp {
    const app = this.#open.get(appId);
    if (app === undefined) throw new HostError("APP_UNKNOWN", "This page is not open any more. Open it again.");
    return app;
  }
}

/** The addresses that a page names. Those that a policy cannot have as sources are left out. */
function domainsOf(page: Json): FeedApp["domains"] {
  const ui = isRecord(page["_meta"]) ? page["_meta"]["ui"] : undefined;
  const csp = isRecord(ui) && isRecord(ui["csp"]) ? ui["csp"] : {};
  const read = (key: string): readonly string[] => {
    const given = csp[key];
    const valid = Array.isArray(given) ? given.filter((each) => typeof each === "string" && sourcePattern.test(each)) : [];
    return valid.slice(0, maxDomains) as string[];
  };
  const all = { connect: read("connectDomains"), resource: read("resourceDomains"), frame: read("frameDomains") };
  return Object.fromEntries(Object.entries(all).filter(([, domains]) => domains.length > 0));
}

/**
 * The policy of a page. The sandbox gives it an origin of its own, which nothing else has: it can neither read the inspector nor store
 * anything, and cannot leave its frame.
 */
function policyOf({ connect = [], resource = [], frame = [] }: FeedApp["domains"]): string {
  const sources = (...lists: readonly (readonly string[])[]): string => lists.flat().join(" ") || "'none'";
  return [
    "default-src 'none'",
    `script-src ${sources(["'unsafe-inline'"], resource)}`,
    `style-src ${sources(["'unsafe-inline'"], resource)}`,
    `img-src ${sources(["data:"], resource)}`,
    `media-src ${sources(["data:"], resource)}`,
    `font-src ${sources(["data:"], resource)}`,
    `connect-src ${sources(connect)}`,
    `frame-src ${sources(frame)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "object-src 'none'",
    "frame-ancestors 'self'",
    "sandbox allow-scripts allow-forms",
  ].join("; ");
}

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that a double received. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

interface Granted {
  readonly clientId: string;
  readonly scope: string;
  readonly resource: string;
  /** All tokens issued from one sign-in. */
  readonly family: string;
}

interface Issued extends Granted {
  readonly endsAt: number;
}

/**
 * An authorization server with discovery, registration, PKCE, refresh tokens that work once, and revocation. A refresh
 * token that is used twice revokes all tokens of its sign-in, as RFC 9700 requires. Tests may change its behaviour at any time.
 */
export class FakeAuthorizationServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  readonly #clients = new Map<string, { secret: string | undefined; redirects: readonly string[]; method: string }>();
  readonly #codes = new Map<string, { clientId: string; challenge: string; redirect: string; scope: string; resource: string }>();
  readonly #refresh = new Map<string, Granted & { isUsed: boolean }>();
  readonly #access = new Map<string, Issued>();
  /** Added to the metadata; undefined removes a field. */
  metadata: Readonly<Record<string, unknown>> = {};
  /** The `iss` that is returned with a code; undefined omits it. */
  iss: (() => string | undefined) | undefined;
  /** Seconds. */
  lifetime: number | undefined = 3600;
  /** Responses to the next token requests, instead of tokens. */
  refusal: { readonly status: number; readonly body: string } | undefined;
  /** Selects the granted scopes from the requested ones. */
  grants: (scope: string) => string = (scope) => scope;
  /** Response of the authorization endpoint, instead of a code. */
  decline: string | undefined;
  #held: { readonly path: string; arrived(): void } | undefined;
  #url = "";

  async [Symbol.asyncDispose](): Promise<void> {
    await stop(this.#server);
  }

  static async start(): Promise<FakeAuthorizationServer> {
    const server = new FakeAuthorizationServer();
    server.#url = await listen(server.#server);
    return server;
  }

  get issuer(): string {
    return this.#url;
  }

  count(path: string): number {
    return this.requests.filter((request) => request.path === path).length;
  }

  addClient(id: string, secret: string | undefined, redirects: readonly string[]): void {
    this.#clients.set(id, { secret, redirects, method: secret === undefined ? "none" : "client_secret_basic" });
  }

  forgetClients(): void {
    this.#clients.clear();
  }

  /** Stalls the next request for a path: it is never answered. */
  hold(path: string): { readonly arrived: Promise<void>; release(): void } {
    let release = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      this.#held = { path, arrived: resolve };
      release = () => {
        this.#held = undefined;
      };
    });
    return { arrived, release };
  }

  /** The client of a valid token. */
  check(token: string): Issued | undefined {
    const issued = this.#access.get(token);
    return issued !== undefined && issued.endsAt > Date.now() ? issued : undefined;
  }

  endAccessTokens(): void {
    this.#access.clear();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { seen, url } = await look(request, this.#url);
    this.requests.push(seen);
    if (this.#held?.path === seen.path) {
      this.#held.arrived();
      return;
    }
    const routes: Readonly<Record<string, (() => void) | undefined>> = {
      "GET /.well-known/oauth-authorization-server": () => json(response, 200, this.#metadata()),
      "POST /register": () => this.#register(seen, response),
      "GET /authorize": () => this.#authorize(url.searchParams, response),
      "POST /token": () => this.#token(seen, response),
      "POST /revoke": () => this.#revoke(seen, response),
    };
    const route = routes[`${request.method} ${url.pathname}`];
    if (route === undefined) json(response, 404, {});
    else route();
  }

  #metadata(): object {
    return {
      issuer: this.#url,
      authorization_endpoint: `${this.#url}/authorize`,
      token_endpoint: `${this.#url}/token`,
      registration_endpoint: `${this.#url}/register`,
      revocation_endpoint: `${this.#url}/revoke`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "client_secret_post"],
      scopes_supported: ["read", "write", "offline_access"],
      ...(this.iss !== undefined && { authorization_response_iss_parameter_supported: true }),
      ...this.metadata,
    };
  }

  #register({ params }: SeenRequest, response: ServerResponse): void {
    const id = `client-${randomBytes(6).toString("hex")}`;
    const method = params["token_endpoint_auth_method"] ?? "client_secret_basic";
    const secret = method === "none" ? undefined : randomBytes(12).toString("hex");
    const redirects = JSON.parse(params["redirect_uris"] ?? "[]") as string[];
    this.#clients.set(id, { secret, redirects, method });
    json(response, 201, {
      client_id: id,
      ...(secret !== undefined && { client_secret: secret, client_secret_expires_at: 0 }),
      redirect_uris: redirects,
      token_endpoint_auth_method: method,
    });
  }

  #authorize(params: URLSearchParams, response: ServerResponse): void {
    const clientId = params.get("client_id") ?? "";
    const redirect = params.get("redirect_uri") ?? "";
    const isKnown = clientId.startsWith("https://") || this.#clients.get(clientId)?.redirects.includes(redirect) === true;
    const back = new URL(redirect);
    back.searchParams.set("state", params.get("state") ?? "");
    const iss = this.iss?.();
    if (iss !== undefined) back.searchParams.set("iss", iss);
    if (!isKnown || this.decline !== undefined) {
      back.searchParams.set("error", this.decline ?? "unauthorized_client");
    } else if (params.get("code_challenge_method") !== "S256") {
      back.searchParams.set("error", "invalid_request");
    } else {
      const code = randomBytes(12).toString("hex");
      this.#codes.set(code, {
        clientId,
        redirect,
        challenge: params.get("code_challenge") ?? "",
        scope: params.get("scope") ?? "",
        resource: params.get("resource") ?? "",
      });
      back.searchParams.set("code", code);
    }
    response.writeHead(302, { location: back.href }).end();
  }

  #token(seen: SeenRequest, response: ServerResponse): void {
    const { params } = seen;
    if (this.refusal !== undefined) {
      response.writeHead(this.refusal.status, { "content-type": "application/json" }).end(this.refusal.body);
      return;
    }
    const clientId = this.#clientOf(seen);
    const granted = clientId === undefined ? undefined : this.#grant(params, clientId);
    if (clientId === undefined) json(response, 401, { error: "invalid_client" });
    else if (granted === undefined) json(response, 400, { error: "invalid_grant" });
    else this.#issue(response, granted, params["grant_type"] !== "client_credentials");
  }

  #grant(params: SeenRequest["params"], clientId: string): Granted | undefined {
    if (params["grant_type"] === "refresh_token") return this.#useRefresh(params, clientId);
    if (params["grant_type"] !== "client_credentials") return this.#useCode(params, clientId);
    return { clientId, scope: params["scope"] ?? "", resource: params["resource"] ?? "", family: clientId };
  }

  #useCode(params: SeenRequest["params"], clientId: string): Granted | undefined {
    const code = this.#codes.get(params["code"] ?? "");
    this.#codes.delete(params["code"] ?? "");
    const proof = createHash("sha256")
      .update(params["code_verifier"] ?? "")
      .digest("base64url");
    const isGood = code?.challenge === proof && code.clientId === clientId && code.redirect === params["redirect_uri"];
    if (!isGood || code.resource !== (params["resource"] ?? "")) return undefined;
    return { clientId, scope: this.grants(code.scope), resource: code.resource, family: randomBytes(6).toString("hex") };
  }

  #useRefresh(params: SeenRequest["params"], clientId: string): Granted | undefined {
    const kept = this.#refresh.get(params["refresh_token"] ?? "");
    if (kept === undefined || kept.clientId !== clientId) return undefined;
    if (kept.isUsed) {
      this.#endFamily(kept.family);
      return undefined;
    }
    kept.isUsed = true;
    return kept;
  }

  #issue(response: ServerResponse, granted: Granted, hasRefresh: boolean): void {
    const access = `access-${randomBytes(12).toString("hex")}`;
    const refresh = `refresh-${randomBytes(12).toString("hex")}`;
    this.#access.set(access, { ...granted, endsAt: Date.now() + (this.lifetime ?? 3600) * 1000 });
    if (hasRefresh) this.#refresh.set(refresh, { ...granted, isUsed: false });
    json(response, 200, {
      access_token: access,
      token_type: "Bearer",
      ...(this.lifetime !== undefined && { expires_in: this.lifetime }),
      ...(hasRefresh && { refresh_token: refresh }),
      scope: granted.scope,
    });
  }

  #revoke(seen: SeenRequest, response: ServerResponse): void {
    const kept = this.#refresh.get(seen.params["token"] ?? "");
    if (this.#clientOf(seen) !== undefined && kept !== undefined) this.#endFamily(kept.family);
    response.writeHead(200).end();
  }

  #endFamily(family: string): void {
    for (const [token, issued] of this.#access) if (issued.family === family) this.#access.delete(token);
    for (const [token, issued] of this.#refresh) if (issued.family === family) this.#refresh.delete(token);
  }

  #clientOf({ params, headers }: SeenRequest): string | undefined {
    const basic = /^Basic (.+)$/.exec(String(headers["authorization"] ?? ""))?.[1];
    const [id, secret] = basic ? Buffer.from(basic, "base64").toString().split(":") : [params["client_id"], params["client_secret"]];
    if (id?.startsWith("https://")) return id;
    const client = this.#clients.get(id ?? "");
    return client !== undefined && client.secret === secret ? id : undefined;
  }
}

/** An MCP server over Streamable HTTP with two tools, `read` and `write`, which require the scopes with the same names. */
export class FakeProtectedServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  /** The authorization server whose tokens are accepted and which the metadata name. */
  authorization: FakeAuthorizationServer;
  resource: string | undefined;
  resourceMetadataUrl: string | undefined;
  /** The `error` of a response that refuses a token. */
  tokenError: string | undefined;
  /** Refuses every token. */
  refusesAll = false;
  #url = "";

  constructor(authorization: FakeAuthorizationServer) {
    this.authorization = authorization;
  }

  static async start(authorization: FakeAuthorizationServer): Promise<FakeProtectedServer> {
    const server = new FakeProtectedServer(authorization);
    server.#url = await listen(server.#server);
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await stop(this.#server);
  }

  get url(): string {
    return `${this.#url}/mcp`;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { seen, url, body } = await look(request, this.#url);
    this.requests.push(seen);
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) this.#describe(response);
    else if (url.pathname !== "/mcp") json(response, 404, {});
    else if (request.method !== "POST") json(response, 405, {});
    else this.#serve(request, body, response);
  }

  #describe(response: ServerResponse): void {
    const { issuer } = this.authorization;
    json(response, 200, { resource: this.resource ?? this.url, authorization_servers: [issuer], scopes_supported: ["read"] });
  }

  #serve(request: IncomingMessage, body: string, response: ServerResponse): void {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const issued = this.refusesAll ? undefined : this.authorization.check(token ?? "");
    if (issued?.resource !== (this.resource ?? this.url))
      this.#challenge(response, 401, this.tokenError === undefined ? "" : `, error="${this.tokenError}"`);
    else this.#answer(JSON.parse(body) as Rpc, issued.scope.split(" "), response);
  }

  #challenge(response: ServerResponse, status: number, more: string): void {
    const metadata = this.resourceMetadataUrl ?? `${this.#url}/.well-known/oauth-protected-resource/mcp`;
    response.setHeader("www-authenticate", `Bearer resource_metadata="${metadata}"${more}`);
    json(response, status, {});
  }

  #answer({ id, method, params }: Rpc, scopes: readonly string[], response: ServerResponse): void {
    const name = params?.name ?? "";
    if (method === "tools/call" && !scopes.includes(name)) {
      this.#challenge(response, 403, `, error="insufficient_scope", scope="${name}"`);
      return;
    }
    if (id === undefined) {
      response.writeHead(202).end();
      return;
    }
    const results: Readonly<Record<string, object | undefined>> = {
      initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "protected", version: "1.0.0" } },
      "tools/list": { tools: ["read", "write"].map((tool) => ({ name: tool, inputSchema: { type: "object" } })) },
      "tools/call": { content: [{ type: "text", text: `did ${name}` }] },
    };
    const result = results[method];
    json(response, 200, result ? { jsonrpc: "2.0", id, result } : { jsonrpc: "2.0", id, error: { code: -32601, message: "?" } });
  }
}

/** Follows a URL as the browser of a user who agrees to everything. */
export async function visit(url: string): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  return response.headers.get("location") ?? "";
}

interface Rpc {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: { readonly name?: string };
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function stop(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}

async function look(request: IncomingMessage, base: string): Promise<{ seen: SeenRequest; url: URL; body: string }> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  const url = new URL(request.url ?? "/", base);
  const isForm = request.headers["content-type"]?.startsWith("application/x-www-form-urlencoded");
  const params = isForm ? Object.fromEntries(new URLSearchParams(body)) : { ...Object.fromEntries(url.searchParams), ...flat(body) };
  return { seen: { method: request.method ?? "", path: url.pathname, params, headers: request.headers }, url, body };
}

function flat(body: string): Record<string, string> {
  if (!body.startsWith("{")) return {};
  const fields = Object.entries(JSON.parse(body) as object);
  return Object.fromEntries(fields.map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]));
}

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

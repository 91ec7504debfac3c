/** What every MCP server's configuration may say. Immutable. */
interface ServerSpecBase {
  /** What the configuration calls it; the first half of `server/tool`. */
  readonly name: string;
  /** The tools it may offer, by the server's own names. Undefined: all. Empty: none, and it is not started. */
  readonly tools: readonly string[] | undefined;
  /** What it may not offer of those. */
  readonly excludedTools?: readonly string[];
  /** Milliseconds for connecting and for each call. Undefined: 60,000 to connect, and the calls' own deadlines. */
  readonly timeout: number | undefined;
  /** It is configured and switched off: it is listed and never started. */
  readonly isDisabled: boolean;
}

/** A program that speaks MCP on its standard input and output. */
export interface LocalServerSpec extends ServerSpecBase {
  readonly type: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  /** Literal values, added to a minimal environment. */
  readonly env: Readonly<Record<string, string>>;
  /** As configured; a relative one starts at the working directory of whoever uses it. Undefined: that directory. */
  readonly cwd: string | undefined;
}

/** A server that is reached over HTTP: Streamable HTTP, or the older transport with server-sent events. */
export interface RemoteServerSpec extends ServerSpecBase {
  readonly type: "http" | "sse";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly oauth: ServerOAuthSpec | undefined;
}

/** What a configuration says about signing in; what it leaves open is found out and asked for. */
export interface ServerOAuthSpec {
  /** Whose tokens are used: nobody else's, and nothing of them is kept. Undefined: those of this machine's user. Set by the host, never read. */
  readonly owner?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly scopes?: readonly string[];
  /** The https address of a document that describes this client; its address is the client's id where servers take such. */
  readonly clientMetadataUrl?: string;
  /** `client_credentials`: the client signs in as itself, with its id and secret, and nobody is asked. */
  readonly grantType?: "authorization_code" | "client_credentials";
  /** The authorization server that the id and the secret are for: no other gets them. Undefined: the first that they were used at. */
  readonly issuer?: string;
  /** The port of the address that the browser is sent back to: `http://localhost:<port>/callback` where there is a client id. */
  readonly callbackPort?: number;
  /** The resource (RFC 8707) that the token is asked for, where it is not the server's own address. */
  readonly resource?: string;
}

export type McpServerSpec = LocalServerSpec | RemoteServerSpec;

/** A server that is named but cannot be started as it stands, such as one with an empty address. */
export interface UnconfiguredServer {
  readonly name: string;
  /** Undefined: not even that can be told. */
  readonly type?: McpServerSpec["type"];
  /** What is missing, and what to do. */
  readonly reason: string;
}

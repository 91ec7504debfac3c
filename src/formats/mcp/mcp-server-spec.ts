/** The fields of every MCP server's configuration. Immutable. */
interface ServerSpecBase {
  /** Its name in the configuration; the first half of `server/tool`. */
  readonly name: string;
  /** The allowed tools, by the server's own names. Undefined: all. Empty: none, and the server is not started. */
  readonly tools: readonly string[] | undefined;
  /** Excluded tools. */
  readonly excludedTools?: readonly string[];
  /** Milliseconds for connecting and for each call. Undefined: 60,000 to connect, and the calls' own deadlines. */
  readonly timeout: number | undefined;
  /** Configured but disabled: it is listed and never started. */
  readonly isDisabled: boolean;
}

/** A program that speaks MCP over stdio. */
export interface LocalServerSpec extends ServerSpecBase {
  readonly type: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  /** Literal values, added to a minimal environment. */
  readonly env: Readonly<Record<string, string>>;
  /** As configured; a relative path is resolved against the working directory of the session. Undefined: that directory. */
  readonly cwd: string | undefined;
}

/** A server over HTTP: Streamable HTTP, or the older HTTP+SSE transport. */
export interface RemoteServerSpec extends ServerSpecBase {
  readonly type: "http" | "sse";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly oauth: ServerOAuthSpec | undefined;
}

/** The OAuth settings of a configuration. Missing ones are discovered, or the user is asked. */
export interface ServerOAuthSpec {
  /**
   * The owner of the tokens, which are not stored and not shared with other owners. Undefined: the user of this machine. Set by
   * the host, never read from a file.
   */
  readonly owner?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly scopes?: readonly string[];
  /** The https URL of a client metadata document. The URL is the client id for servers that support it. */
  readonly clientMetadataUrl?: string;
  /** `client_credentials`: the client authenticates as itself, with its id and secret, without asking the user. */
  readonly grantType?: "authorization_code" | "client_credentials";
  /**
   * The authorization server for which the id and secret are valid; no other receives them. Undefined: the first one that they
   * were used with.
   */
  readonly issuer?: string;
  /** The port of the redirect URL: `http://localhost:<port>/callback` where there is a client id. */
  readonly callbackPort?: number;
  /** The resource (RFC 8707) of the token, if it is not the server's URL. */
  readonly resource?: string;
}

export type McpServerSpec = LocalServerSpec | RemoteServerSpec;

/** A server with an incomplete configuration that cannot be started, for example with an empty URL. */
export interface UnconfiguredServer {
  readonly name: string;
  /** Undefined: unknown. */
  readonly type?: McpServerSpec["type"];
  /** The missing part, and how to fix it. */
  readonly reason: string;
}

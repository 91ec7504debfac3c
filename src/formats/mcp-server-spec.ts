/** What every MCP server's configuration may say. Immutable. */
interface ServerSpecBase {
  /** What the configuration calls it; the first half of `server/tool`. */
  readonly name: string;
  /** The tools it may offer, by the server's own names. Undefined: all. Empty: none, and it is not started. */
  readonly tools: readonly string[] | undefined;
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
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly scopes?: readonly string[];
  /** The port of the address that the browser is sent back to. */
  readonly callbackPort?: number;
}

export type McpServerSpec = LocalServerSpec | RemoteServerSpec;

/** A server that is named but cannot be started as it stands, such as one with an empty address. */
export interface UnconfiguredServer {
  readonly name: string;
  /** What is missing, and what to do. */
  readonly reason: string;
}

/** The lists of an MCP server about whose changes its clients are notified. */
export type McpList = "tools" | "prompts" | "resources";

/** A request of an MCP client that one server passes to another. Its token has been checked, and is not passed. */
export interface PassedRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Where the answer to a passed request is written. */
export interface PassedResponse {
  /** Fires when the client has disconnected, or the server that passed the request is gone. */
  readonly signal: AbortSignal;
  begin(status: number, headers: Readonly<Record<string, string>>): void;
  write(text: string): void;
  end(): void;
  /** Ends the response before it is complete. */
  abandon(): void;
  /** Nothing was done with the request: its session is not here. Only before `begin`. */
  refuse(): void;
}

/** What makes a session of an MCP client again: its requests that changed the session, `initialize` first. */
export type McpSessionRequests = readonly Readonly<Record<string, unknown>>[];

/** A session of an MCP client, as all servers know it. */
export interface SharedMcpSession {
  /** The id of the server that has it. */
  readonly owner: string;
  readonly requests: McpSessionRequests;
  /** Changes whenever the record does. */
  readonly revision: number;
}

/** An MCP server, as its peers reach it. */
export interface McpPeer {
  answer(request: PassedRequest, response: PassedResponse): void;
  /** A list has changed at another server. */
  listChanged(list: McpList): void;
  /** Another server has the session now. */
  sessionTaken(sessionId: string): void;
}

/** A server's place among its peers. Every method but `announce` rejects when the peers are out of reach. */
export interface McpSeat extends AsyncDisposable {
  /** Of this server; letters, digits, `_` and `-`. No other server has it, nor this one after a restart. */
  readonly id: string;
  /**
   * Has another server answer. `ended`: it has, or the client has disconnected. `absent`: it is not there, or does not have the session, and has done nothing.
   * `lost`: it is not heard of any more, and may have done anything.
   */
  pass(to: string, request: PassedRequest, response: PassedResponse): Promise<"ended" | "absent" | "lost">;
  /** Notifies the peers that a list has changed here. */
  announce(list: McpList): void;
  /** Undefined: no server has the session. */
  find(sessionId: string): Promise<SharedMcpSession | undefined>;
  /** Records a session of this server, or what has changed of it. One that another server has taken is reported by `sessionTaken`. */
  keep(sessionId: string, requests: McpSessionRequests): Promise<void>;
  /** Makes this server the owner. False: another was quicker, or the session has ended. */
  take(sessionId: string, found: SharedMcpSession): Promise<boolean>;
  forget(sessionId: string): Promise<void>;
}

/** Several MCP servers that answer for each other, so that a client may reach any of them with each request. */
export interface McpPeers {
  /** Servers with the same name are peers: they serve the same. */
  join(name: string, server: McpPeer): McpSeat;
}

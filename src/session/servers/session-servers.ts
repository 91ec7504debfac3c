import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Asks } from "../../tools/tool.ts";
import type { CatalogView } from "../catalog/catalog-view.ts";
import type { ServerInstructions } from "../instructions/instructions.ts";

/** What MCP servers may ask for while they work. */
export interface ServerPolicy {
  /** `ask`: whoever is attached. `deny`: nobody. */
  readonly elicitation: "ask" | "deny";
  /** `allow`: where nobody answers, the session's own model does, and its owner pays for it. */
  readonly sampling: "ask" | "deny" | "allow";
}

/** Where the configuration of a server comes from. */
export interface ServerOrigin {
  readonly kind: "host" | "skill" | "plugin" | "agent" | "session";
  /** Which skill, plugin or agent. */
  readonly source?: string;
}

/** Where a server's configuration comes from, in the Copilot SDK's words. */
export function sourceOf({ kind }: ServerOrigin): "user" | "workspace" | "plugin" {
  if (kind === "skill" || kind === "plugin") return "plugin";
  return kind === "host" ? "workspace" : "user";
}

/** How a server stands, in the Copilot SDK's words. `pending`: not started yet, or being connected to. */
export type ServerStatus = "connected" | "failed" | "needs-auth" | "pending" | "disabled" | "stopped" | "not_configured";

/** A tool of a server, whether or not a session may call it. */
export interface ServerTool {
  /** What models call it. */
  readonly name: string;
  /** What the server calls it. */
  readonly nativeName: string;
  readonly description?: string;
}

/** Something of a server that is not offered until somebody approves it. */
export interface HeldBack {
  readonly kind: string;
  readonly name: string;
  /** Why, and how it differs from what was approved. */
  readonly reason: string;
  readonly diff?: string;
}

/** An MCP server as it stands now. */
export interface ServerInfo {
  readonly name: string;
  readonly origin: ServerOrigin;
  readonly transport?: "stdio" | "http" | "sse";
  readonly status: ServerStatus;
  /** What went wrong, or what its configuration lacks. */
  readonly error?: string;
  /** The end of what it wrote to stderr. */
  readonly stderrTail?: string;
  readonly pid?: number;
  readonly protocolVersion?: string;
  /** What the server says about its use. */
  readonly instructions?: string;
  readonly tools: readonly ServerTool[];
  readonly held: readonly HeldBack[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What became of a server. */
export type ServerNews =
  | { readonly kind: "status"; readonly server: string; readonly status: ServerStatus; readonly error: string | undefined }
  | { readonly kind: "list"; readonly server: string; readonly list: "tools" | "prompts" | "resources" };

/** Asks whoever is attached to a session to sign in. Rejects when nobody can. */
export type AskToSignIn = (data: Asks["authorization"]["data"], signal: AbortSignal) => Promise<Asks["authorization"]["answer"]>;

/** Asks whoever is attached to a session for a token. Undefined: nobody there gives any. */
export type AskForToken = (data: Asks["accessToken"]["data"], signal: AbortSignal) => Promise<Asks["accessToken"]["answer"] | undefined>;

/** The MCP servers of one session, as whoever connects them gives them to it. */
export interface SessionServers {
  readonly policy: ServerPolicy;
  /** What was wrong with configurations that the session itself brought; each message once. */
  readonly diagnostics: readonly Diagnostic[];
  /** The servers of the session's own conversation, in order of precedence. */
  list(): readonly ServerInfo[];
  /** Those of one view's conversation. The same array until it changes. */
  instructions(view: CatalogView): readonly ServerInstructions[];
  /** How a server is reached, of the session's own conversation; undefined: there is none of this name. */
  transportOf(name: string): ServerInfo["transport"];
  /** False: somebody who waited would learn no more. */
  isPending(view: CatalogView): boolean;
  /** Starts those of a view in the background. */
  start(view: CatalogView): void;
  /** Starts those of a view, and waits until each was tried once, though not for ever. Rejects with the signal's reason only. */
  ready(view: CatalogView, signal: AbortSignal): Promise<void>;
  /** Starts one that was stopped or has failed, of this session. @throws HostError `MCP_SERVER_UNKNOWN`. */
  startServer(name: string): void;
  /** Goes without one from now on; it ends when no other session uses it. @throws HostError `MCP_SERVER_UNKNOWN`. */
  stopServer(name: string): void;
  /** Ends one and starts it anew, for all who use it. @throws HostError `MCP_SERVER_UNKNOWN`. */
  restartServer(name: string): Promise<void>;
  /** Overrules what its configuration says. @throws HostError `MCP_SERVER_UNKNOWN`. */
  enableServer(name: string): void;
  subscribe(listener: (news: ServerNews) => void): Disposable;
  /** Whom a server that wants somebody to sign in may ask. */
  onSignIn(ask: AskToSignIn): void;
  /** Whom a server of the session's own is asked a token for, where sessions have tokens of their own. */
  onTokenWanted(ask: AskForToken): void;
  /** Has somebody sign in to a server, and connects to it; `again`: also when there are tokens. @throws HostError `MCP_SERVER_UNKNOWN`, `MCP_NO_SIGN_IN`. */
  signIn(name: string, options: { readonly authorize: AskToSignIn; readonly again?: boolean | undefined }): Promise<ServerInfo>;
}

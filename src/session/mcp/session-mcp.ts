import { HostError } from "../../base/errors.ts";
import { waitFor } from "../../base/wait.ts";
import type { ServerProbe } from "../../mcp/oauth/probe-server.ts";
import type { SessionRuntime } from "../session-runtime.ts";
import type { AskToSignIn, ServerInfo, ServerTool, SessionServers } from "./server-connections.ts";

/** The MCP servers of a session. What it stops or switches off, it goes without; other sessions keep theirs. */
export class SessionMcp {
  readonly #host: Pick<SessionRuntime, "assertOpen" | "config" | "update">;
  readonly #servers: SessionServers | undefined;

  constructor(host: Pick<SessionRuntime, "assertOpen" | "config" | "update" | "environment">) {
    this.#host = host;
    this.#servers = host.environment.mcp;
  }

  /** All of them as they stand now, lowest precedence first. Starts none; `session.ready()` does, and waits a while. */
  list(): readonly ServerInfo[] {
    this.#host.assertOpen();
    return this.#servers?.list() ?? [];
  }

  /** The tools of one, also of those that the session's filters hide. @throws HostError `MCP_SERVER_UNKNOWN`. */
  tools(name: string): readonly ServerTool[] {
    return this.#find(name).tools;
  }

  /** Starts one that was stopped, has failed or waits for a sign-in. @throws HostError `MCP_SERVER_UNKNOWN`. */
  start(name: string): void {
    this.#find(name);
    this.#servers?.startServer(name);
  }

  /** Goes without one until `start`. Its process ends when no other session uses it. @throws HostError `MCP_SERVER_UNKNOWN`. */
  stop(name: string): void {
    this.#find(name);
    this.#servers?.stopServer(name);
  }

  /** Ends one and starts it again, for all sessions that use it; settles when it has been tried. @throws HostError `MCP_SERVER_UNKNOWN`. */
  async restart(name: string): Promise<void> {
    this.#find(name);
    await this.#servers?.restartServer(name);
  }

  /** Takes one out of `disabledMcpServers`, and overrules a configuration that has it disabled. @throws HostError `MCP_SERVER_UNKNOWN`. */
  async enable(name: string): Promise<void> {
    this.#find(name);
    this.#servers?.enableServer(name);
    const { disabled } = this.#host.config.servers;
    if (disabled.has(name)) await this.#host.update({ disabledMcpServers: [...disabled].filter((other) => other !== name) });
  }

  /** Puts one into `disabledMcpServers`. @throws HostError `MCP_SERVER_UNKNOWN`. */
  async disable(name: string): Promise<void> {
    this.#find(name);
    await this.#host.update({ disabledMcpServers: [...this.#host.config.servers.disabled, name] });
  }

  /**
   * Begins to sign in to a server, for all who use it. Returns the address where the user continues in a browser, and
   * connects when they have; undefined when there are tokens already and it is connected.
   * @throws HostError `MCP_SERVER_UNKNOWN`, `MCP_NO_SIGN_IN`; what goes wrong before there is an address.
   */
  signIn(name: string, { again = false }: { readonly again?: boolean } = {}): Promise<string | undefined> {
    this.#find(name);
    return new Promise((resolve, reject) => {
      const authorize: AskToSignIn = ({ url }, signal) => {
        resolve(url);
        return waitFor(never, { signal });
      };
      // Once there is an address, this is not awaited any more: the server's status shows the outcome.
      this.#servers?.signIn(name, { authorize, again }).then(() => resolve(undefined), reject);
    });
  }

  /**
   * Finds out whether a server requires a sign-in, and asks no user. Undefined: the session has no servers.
   * @throws HostError `MCP_SERVER_UNKNOWN`, `MCP_NO_SIGN_IN`. @internal
   */
  async probe(name: string, signal: AbortSignal): Promise<ServerProbe | undefined> {
    this.#find(name);
    return this.#servers?.probe(name, signal);
  }

  #find(name: string): ServerInfo {
    const servers = this.list();
    const found = servers.find((server) => server.name === name);
    if (found !== undefined) return found;
    const known = servers.length === 0 ? "It has no MCP servers." : `Its servers are: ${servers.map((server) => server.name).join(", ")}.`;
    throw new HostError("MCP_SERVER_UNKNOWN", `This session has no MCP server ${JSON.stringify(name)}. ${known}`);
  }
}

const never: Promise<never> = new Promise(() => {});

import { definePlugin, HostError, type Plugin, type PluginApi, type Session } from "skillhost";
import { LanguageServer } from "./language-server.ts";
import { configSchema, type LanguageServerOptions } from "./options.ts";

export type { AgentCall, AgentTurn, TurnError } from "./agent-turn.ts";
export type { SendOptions } from "./conversation.ts";
export type { LanguageServer } from "./language-server.ts";
export type { LanguageServerOptions } from "./options.ts";
export type { ToolStatus } from "./registrar.ts";
export type { SignInStatus } from "./sign-in.ts";
export type { RegisteredTool } from "./wire.ts";

/** The plugin, with a way to start language servers for sessions of its hosts. */
export interface LanguageServerPlugin extends Plugin {
  /**
   * Starts a Copilot language server that uses the tools of a session. It ends with the session, or when the returned
   * server is closed. Options take precedence over the plugin's configuration.
   * @throws HostError `LANGUAGE_SERVER_NOT_FOUND`, `LANGUAGE_SERVER_START`, `LANGUAGE_SERVER_TIMEOUT`,
   * `LANGUAGE_SERVER_EXITED`; `PLUGIN_INACTIVE` when the session's host does not have this plugin.
   */
  connect(session: Session, options?: LanguageServerOptions): Promise<LanguageServer>;
}

/** One activation of the plugin, with the servers that run for sessions of its host. */
interface Place {
  readonly api: PluginApi<LanguageServerOptions>;
  readonly open: Map<string, Set<LanguageServer>>;
}

const places = new Set<Place>();

/** Lets GitHub's Copilot language server use the tools of a session. */
export const languageServer: LanguageServerPlugin = Object.freeze({
  ...definePlugin<LanguageServerOptions>({
    name: "language-server",
    version: "1.0.0",
    // The tools of an editor, with the names that the server's model knows.
    requires: { "workspace-tools": "^1.0.0" },
    configSchema,
    activate(api) {
      const place: Place = { api, open: new Map() };
      places.add(place);
      api.onSessionClosed((sessionId) => closeAll(place.open.get(sessionId)));
      api.onDispose(async () => {
        places.delete(place);
        await Promise.all(Array.from(place.open.values(), closeAll));
      });
    },
  }),
  connect,
});

async function connect(session: Session, options: LanguageServerOptions = {}): Promise<LanguageServer> {
  const place = [...places].find(({ api }) => api.session(session.id) !== undefined);
  if (place === undefined) throw inactive(session.id);
  await session.ready();
  const { api, open } = place;
  const opened = open.get(session.id) ?? new Set();
  const server = new LanguageServer({ api, session, options: { ...api.config, ...options }, onClosed: () => opened.delete(server) });
  open.set(session.id, opened.add(server));
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.close();
    throw error;
  }
}

async function closeAll(servers: Iterable<LanguageServer> = []): Promise<void> {
  await Promise.all(Array.from(servers, (server) => server.close()));
}

function inactive(sessionId: string): HostError {
  const message = `The host of session ${sessionId} does not have this plugin. Name it in the plugins of createHost.`;
  return new HostError("PLUGIN_INACTIVE", message);
}

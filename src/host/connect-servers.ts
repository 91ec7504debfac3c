import { canonicalJson, sha256 } from "../base/canonical-json.ts";
import { errorMessage } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { McpServerSpec, RemoteServerSpec } from "../formats/mcp/mcp-server-spec.ts";
import type { CredentialStore } from "../mcp/oauth/credentials.ts";
import type { ServerOAuth } from "../mcp/oauth/oauth-session.ts";
import type { ServerConnector } from "../mcp/supervisor/server-connector.ts";
import type { AskForToken, AskToSignIn, ServerPolicy } from "../session/servers/session-servers.ts";

export interface ConnectorOptions {
  readonly log: Logger;
  readonly policy: ServerPolicy;
  /** Where what people signed in with is kept: the user's own folder. */
  readonly credentialsDirectory: string;
  /** Has somebody sign in to the server at an address. */
  readonly askToSignIn: (url: string) => AskToSignIn;
  /** Asks a session for the tokens of its own. Absent: there are no such sessions. */
  readonly askForToken?: (owner: string) => AskForToken;
  /** Whether there is anybody who could be asked to sign in to the server at an address. */
  readonly isAttended: (url: string) => boolean;
}

/** Connects a host's MCP servers, and has people sign in where one wants it. */
export interface OwnedConnector extends Disposable {
  readonly connect: ServerConnector;
  /** Has somebody sign in anew. Settles when that is done, or when nobody does. */
  signIn(spec: McpServerSpec): Promise<void>;
  /** How a server is signed in to. Undefined: it is not, or not by OAuth. */
  oauthOf(spec: McpServerSpec): Promise<ServerOAuth> | undefined;
}

/** The client is imported when the first server is: most programs need none, and it takes longer than all the rest. */
export function createConnector(options: ConnectorOptions): OwnedConnector {
  const { log, policy } = options;
  const sessions = new Map<string, Promise<ServerOAuth>>();
  const oauthOf = (spec: McpServerSpec): Promise<ServerOAuth> | undefined => {
    if (spec.type === "stdio" || hasAuthorization(spec)) return undefined;
    const { name, url, headers, oauth } = spec;
    const key = sha256(canonicalJson([name, url, headers, oauth ?? null]));
    const known = sessions.get(key) ?? openOAuth(spec, options);
    sessions.set(key, known);
    return known;
  };
  return {
    async connect(spec, request) {
      const [{ connectServer }, auth] = await Promise.all([import("../mcp/connection/connect-server.ts"), oauthOf(spec)]);
      return connectServer(spec, { ...request, log, requests: policy, auth });
    },
    async signIn(spec) {
      try {
        await (await oauthOf(spec))?.signIn();
      } catch (error) {
        log.warning(`No user signed in to the MCP server "${spec.name}".`, { error: errorMessage(error) });
      }
    },
    oauthOf,
    [Symbol.dispose]() {
      for (const opening of sessions.values()) void opening.then((oauth) => oauth[Symbol.dispose]());
      sessions.clear();
    },
  };
}

/** Whoever wrote a token into the configuration wants that one used. */
function hasAuthorization({ headers }: RemoteServerSpec): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

async function openOAuth({ name, url, headers, oauth }: RemoteServerSpec, options: ConnectorOptions): Promise<ServerOAuth> {
  const { log, askToSignIn, isAttended } = options;
  const owner = oauth?.owner;
  const [{ createOAuth }, store] = await Promise.all([import("../mcp/oauth/oauth-session.ts"), openCredentials(owner, options)]);
  if (owner !== undefined) {
    const acquire = options.askForToken?.(owner);
    const people = { authorize: askToSignIn(url), acquire, isAttended: () => acquire !== undefined || isAttended(url) };
    return createOAuth({ serverName: name, serverUrl: url, spec: oauth, headers, store, ...people, log });
  }
  const people = { authorize: askToSignIn(url), isAttended: () => isAttended(url) };
  return createOAuth({ serverName: name, serverUrl: url, spec: oauth, headers, store, ...people, log });
}

/** What belongs to one session ends with it. */
async function openCredentials(owner: string | undefined, { credentialsDirectory, log }: ConnectorOptions): Promise<CredentialStore> {
  if (owner !== undefined) return (await import("../mcp/oauth/file-credentials.ts")).createMemoryCredentials();
  return (await import("../mcp/oauth/file-credentials.ts")).createFileCredentials({ directory: credentialsDirectory, log });
}

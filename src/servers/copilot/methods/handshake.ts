import { packageVersion } from "../../../base/package-root.ts";
import type { Client, ProtocolVersion } from "../clients/client.ts";
import type { Params } from "../connection/params.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The methods with which clients begin. They are loaded at start, so they must need only small modules. */
export const handshake: MethodFamily = {
  connect({ server, client, params }) {
    refuseOtherVersions(params);
    if (client.isLockedOut || !server.accepts(params.optionalText("token"))) {
      client.countRefusal();
      throw new Error("AUTHENTICATION_FAILED: the token is missing or wrong.");
    }
    client.admit();
    client.version = 3;
    server.warmUp();
    return { ok: true, protocolVersion: 3, version: packageVersion };
  },
  ping({ client, params }) {
    refuseOtherVersions(params);
    const message = params.optionalText("message");
    return {
      message: message === undefined ? "pong" : `pong: ${message}`,
      timestamp: new Date().toISOString(),
      protocolVersion: versionOf(client),
    };
  },
  "status.get": ({ client }) => ({ version: packageVersion, protocolVersion: versionOf(client) }),
  "auth.getStatus": (call) => authStatus(call),
  async "runtime.shutdown"({ server }) {
    await server.endSessions();
    // After the answer is written.
    setImmediate(() => server.requestShutdown());
  },
  "secrets.addFilterValues"({ server, params }) {
    for (const value of params.texts("values")) if (value.length >= 4) server.secrets.add(value);
    return { ok: true };
  },
};

/** Clients of protocol 3 begin with `connect`, so a client that pings first speaks protocol 2. */
function versionOf(client: Client): ProtocolVersion {
  client.version ??= 2;
  return client.version;
}

function refuseOtherVersions(params: Params): void {
  const wanted = params.optionalNumber("protocolVersion");
  if (wanted === undefined || wanted === 2 || wanted === 3) return;
  throw new Error(
    `This client uses version ${wanted} of the protocol, but skillhost supports versions 2 and 3. Use an SDK with one of these versions.`,
  );
}

/** Whether models can be used, according to the token and the endpoint of the environment. */
export function authStatus({ server: { options } }: Pick<Call, "server">): object {
  if (options.gitHubToken !== undefined) return { isAuthenticated: true, authType: "env", statusMessage: "A token was provided." };
  const { COPILOT_API_URL: copilot, OPENAI_BASE_URL: openai } = options.environment;
  const endpoint = copilot || openai;
  return endpoint
    ? { isAuthenticated: true, authType: "api-key", statusMessage: "Models come from the endpoint of the environment." }
    : { isAuthenticated: false, statusMessage: "No token was provided, and no endpoint is configured." };
}

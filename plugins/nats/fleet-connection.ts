import { readFileSync } from "node:fs";
import { isIP, type Socket } from "node:net";
import { checkServerIdentity, type PeerCertificate, type ConnectionOptions as TlsConnectionOptions } from "node:tls";
import type { Authenticator, ConnectionOptions, MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { HostError } from "skillhost";

/**
 * Which servers a fleet meets at, and as whom.
 *
 * @example
 * ```ts
 * const options: FleetConnectionOptions = { servers: "nats://127.0.0.1:4222" };
 * ```
 */
export interface FleetConnectionOptions {
  /** Addresses of the servers, such as `nats://127.0.0.1:4222`; several for a cluster. */
  readonly servers: string | readonly string[];
  /** The first part of every subject: fleets with different ones do not meet. Default: `skillhost`. */
  readonly prefix?: string | undefined;
  /** A credentials file (JWT and key), as `nsc` writes it. */
  readonly credentials?: string | undefined;
  /** A file with the seed of an NKey. */
  readonly nkey?: string | undefined;
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /**
   * Files with certificates: of the authorities, and the own one with its key. False: without TLS. Default: TLS with the authorities of the system
   * for servers that are not on this machine.
   */
  readonly tls?:
    | false
    | { readonly ca?: string | undefined; readonly cert?: string | undefined; readonly key?: string | undefined }
    | undefined;
}

const subjectToken = /^[A-Za-z0-9_-]{1,64}$/;

/** The subjects of a fleet. Only what follows `tools` is of a queue group. */
export interface FleetSubjects {
  readonly tool: (signature: string, name: string) => string;
  readonly presence: string;
  readonly rollCall: string;
  readonly worker: (id: string, what: string) => string;
  readonly host: (id: string, what: string) => string;
  /** An MCP server, or all with the same name. */
  readonly mcp: (id: string, what: string) => string;
}

/** @throws HostError `FLEET_OPTIONS` for a prefix that is not one token. */
export function fleetSubjects(prefix: string = "skillhost"): FleetSubjects {
  if (!subjectToken.test(prefix)) throw invalid(`the prefix ${JSON.stringify(prefix)} must consist of letters, digits, "_" and "-"`);
  return {
    tool: (signature, name) => `${prefix}.tools.${signature}.${name}`,
    presence: `${prefix}.presence`,
    rollCall: `${prefix}.roll-call`,
    worker: (id, what) => `${prefix}.workers.${id}.${what}`,
    host: (id, what) => `${prefix}.hosts.${id}.${what}`,
    mcp: (id, what) => `${prefix}.mcp.${id}.${what}`,
  };
}

/** A connection, and what the library has for it: the library is loaded on demand. */
export interface FleetConnection {
  readonly connection: NatsConnection;
  readonly createHeaders: () => MsgHdrs;
}

/**
 * Connects, and reconnects for ever. With `waits`, the first connection is waited for, too.
 * @throws HostError `FLEET_OPTIONS`, `FLEET_PACKAGES` when the packages of NATS are not installed, `FLEET_REFUSED`, `FLEET_UNREACHABLE`.
 */
export async function connectFleet(options: FleetConnectionOptions, name: string, waits: boolean = false): Promise<FleetConnection> {
  const library = await importLibrary();
  const handshake = new Handshake();
  const read = readConnectionOptions(options, library, handshake);
  try {
    const connecting = library.connect({
      ...read,
      name,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      waitOnFirstConnect: waits,
      timeout: connectTimeoutMs,
      // Changed credentials or rights on a server must not end a connection for ever.
      ignoreAuthErrorAbort: true,
    });
    // Of several servers, another one may accept.
    const isAlone = !waits && Array.isArray(read.servers) && read.servers.length === 1;
    const connection = await (isAlone ? handshake.race(connecting) : connecting);
    handshake.isOver = true;
    return { connection, createHeaders: library.headers };
  } catch (error) {
    throw connectionFault(error, options);
  }
}

/** For each server in turn. */
const connectTimeoutMs = 10_000;

/**
 * A server that wants a certificate of the client ends the connection after the client has completed the handshake. The library does not notice that,
 * and waits for the server until its time is over.
 */
class Handshake {
  isOver = false;
  #refuse: ((error: HandshakeRefused) => void) | undefined;

  completed(socket: Pick<Socket, "once"> | undefined): void {
    socket?.once("close", () => {
      if (!this.isOver) this.#refuse?.(new HandshakeRefused(certificateAdvice));
    });
  }

  async race(connecting: Promise<NatsConnection>): Promise<NatsConnection> {
    const refused = new Promise<never>((_, reject) => {
      this.#refuse = reject;
    });
    try {
      return await Promise.race([connecting, refused]);
    } catch (error) {
      // The library continues for a while.
      connecting.then((late) => late.close()).catch(() => {});
      throw error;
    }
  }
}

class HandshakeRefused extends Error {}

const certificateAdvice =
  "it ended the connection after the TLS handshake. It may require a certificate of the client that its authorities have signed: name the files of yours as cert and key (--tls-cert, --tls-key).";

type Library = Pick<
  typeof import("@nats-io/transport-node"),
  "connect" | "headers" | "credsAuthenticator" | "nkeyAuthenticator" | "tokenAuthenticator" | "usernamePasswordAuthenticator"
>;

async function importLibrary(): Promise<Library> {
  try {
    return await import("@nats-io/transport-node");
  } catch (cause) {
    if ((cause as { readonly code?: unknown } | null)?.code !== "ERR_MODULE_NOT_FOUND") throw cause;
    const install = "npm install @nats-io/transport-node";
    throw new HostError("FLEET_PACKAGES", `The packages of NATS are not installed. Install them beside skillhost: ${install}`, { cause });
  }
}

function readConnectionOptions(options: FleetConnectionOptions, library: Library, handshake: Handshake): ConnectionOptions {
  const addresses = typeof options.servers === "string" ? options.servers.split(",") : options.servers;
  const servers = addresses.map((address) => readServer(address.trim()));
  if (servers.length === 0) throw invalid("no server is named");
  const authenticator = authenticatorOf(options, library);
  const wantsTls = options.tls === undefined && servers.some(({ isLocal }) => !isLocal);
  // To the library, no options at all mean TLS where the server offers it.
  const tls = options.tls === false ? null : options.tls !== undefined || wantsTls ? readTls(options.tls ?? {}, handshake) : undefined;
  return {
    servers: servers.map(({ address }) => address),
    ...(authenticator !== undefined && { authenticator }),
    ...(tls !== undefined && { tls }),
  };
}

interface ServerAddress {
  readonly address: string;
  readonly isLocal: boolean;
}

function readServer(text: string): ServerAddress {
  const full = text.includes("://") ? text : `nats://${text}`;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  if (url === undefined || url.hostname === "" || !["nats:", "tls:"].includes(url.protocol))
    throw invalid(`${JSON.stringify(text)} is not an address such as nats://127.0.0.1:4222`);
  // An address is shown in logs and lists of processes.
  if (url.username !== "" || url.password !== "")
    throw invalid("an address must not contain a name or a password; use credentials, nkey, token, or user and password");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isLocal = host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
  return { address: `${url.hostname}:${url.port || "4222"}`, isLocal: isLocal && url.protocol === "nats:" };
}

function authenticatorOf(options: FleetConnectionOptions, library: Library): Authenticator | undefined {
  const { credentials, nkey, token, user, password } = options;
  const given = Object.entries({ credentials, nkey, token, user }).filter(([, value]) => value !== undefined);
  if (given.length > 1) throw invalid(`${given.map(([key]) => key).join(" and ")} exclude each other`);
  if (credentials !== undefined) return library.credsAuthenticator(readSecret(credentials, "credentials"));
  if (nkey !== undefined) return library.nkeyAuthenticator(readSeed(nkey));
  if (token !== undefined) return library.tokenAuthenticator(token);
  return user === undefined ? undefined : library.usernamePasswordAuthenticator(user, password ?? "");
}

/** The first line that is neither empty nor a comment. */
function readSeed(file: string): Uint8Array {
  const lines = new TextDecoder().decode(readSecret(file, "nkey")).split(/\r?\n/);
  const seed = lines.map((line) => line.trim()).find((line) => line !== "" && !line.startsWith("#"));
  if (seed === undefined || !/^S[A-Z2-7]{50,}$/.test(seed)) throw invalid(`${file} contains no seed of an NKey`);
  return new TextEncoder().encode(seed);
}

function readSecret(file: string, what: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (error) {
    throw invalid(`${what} cannot be read: ${(error as Error).message}`);
  }
}

type LibraryTls = NonNullable<ConnectionOptions["tls"]> & Pick<TlsConnectionOptions, "checkServerIdentity">;

function readTls({ ca, cert, key }: Exclude<FleetConnectionOptions["tls"], false | undefined>, handshake: Handshake): LibraryTls {
  return {
    checkServerIdentity(host, certificate) {
      const fault = checkIdentity.call(this as IdentityCheck | undefined, host, certificate);
      if (fault === undefined) handshake.completed((this as IdentityCheck | undefined)?.socket);
      return fault;
    },
    ...(ca !== undefined && { caFile: ca }),
    ...(cert !== undefined && { certFile: cert }),
    ...(key !== undefined && { keyFile: key }),
  };
}

/** What Node calls the check with: the options of the connection. */
interface IdentityCheck {
  readonly servername?: string;
  readonly socket?: Pick<Socket, "remoteAddress" | "once">;
}

/**
 * For a server that is named by its IP address the library names no host, and Node compares the certificate with "localhost". Node calls this as a
 * method of the options of the connection, which have its socket; called otherwise, it compares with what Node says.
 */
function checkIdentity(this: IdentityCheck | undefined, host: string, certificate: PeerCertificate): Error | undefined {
  const address = this?.servername === "" ? this.socket?.remoteAddress : undefined;
  return checkServerIdentity(address ?? host, certificate);
}

function connectionFault(error: unknown, { servers, tls }: FleetConnectionOptions): Error {
  const message = error instanceof Error ? error.message : String(error);
  const at = [servers].flat().join(", ");
  if (error instanceof HandshakeRefused)
    return new HostError("FLEET_REFUSED", `The NATS server at ${at} refuses the connection: ${message}`, { cause: error });
  // The library reads options for TLS that are not there when a server requires it.
  if (tls === false && error instanceof Error && (error.cause instanceof TypeError || error instanceof TypeError))
    return new HostError("FLEET_REFUSED", `The NATS server at ${at} requires TLS, which "tls": false (--no-tls) turns off.`, {
      cause: error,
    });
  if (/authori[sz]ation|authentication|credential/i.test(message)) {
    return new HostError("FLEET_REFUSED", `The NATS server at ${at} refuses these credentials: ${message}`, { cause: error });
  }
  return new HostError("FLEET_UNREACHABLE", `No NATS server answers at ${at}: ${message}`, { cause: error });
}

function invalid(what: string): HostError {
  return new HostError("FLEET_OPTIONS", `The options of the fleet cannot be used: ${what}.`);
}

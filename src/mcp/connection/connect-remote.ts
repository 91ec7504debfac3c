import { HostError } from "../../base/errors.ts";
import type { RemoteServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { ConnectOptions } from "./connect-options.ts";
import type { McpConnection, ProtocolEra } from "./connection.ts";
import { httpStatusOf } from "./connection-errors.ts";
import { connectTimeoutOf, type Handshake, shakeHands } from "./handshake.ts";
import { createHttpTransport } from "./http-transport.ts";
import { loadSdk, type Sdk } from "./sdk.ts";

// Over HTTP who does not know the question answers with an error; silence is a fault.
const silence = 10_000;

/**
 * Connects over Streamable HTTP in the era that the server speaks, or over the older transport with server-sent events
 * where it knows nothing else.
 */
export async function connectRemote(spec: RemoteServerSpec, options: ConnectOptions): Promise<McpConnection> {
  if (!isAddress(spec.url)) {
    throw new HostError("MCP_NOT_STARTED", `The address of the MCP server ${spec.name} is not an http or https address.`);
  }
  const sdk = await loadSdk();
  const started = performance.now();
  const timeout = connectTimeoutOf(spec, options);
  const attempt = (kind: "http" | "sse", era: ProtocolEra | undefined): Promise<Handshake> => {
    const left = Math.max(1, timeout - (performance.now() - started));
    const probeTimeout = era === "modern" ? left : Math.min(silence, left / 3);
    const link = createHttpTransport(sdk, spec, kind, options);
    return shakeHands(sdk, link, options, { serverName: spec.name, era, timeout: left, probeTimeout, signal: options.signal });
  };
  if (spec.type === "sse") return outcome(await attempt("sse", "legacy"));
  const first = await attempt("http", options.prior?.era);
  if (first.kind === "connected") return first.connection;
  const plain = options.prior === undefined && wantsPlain(first.error, sdk) ? await attempt("http", "legacy") : first;
  if (plain.kind === "connected") return plain.connection;
  if (!knowsNoPost(plain.error, sdk)) throw plain.error;
  const old = await attempt("sse", "legacy");
  // What the server has against the newer transport says more than that it has no older one.
  return outcome(old.kind === "connected" || old.error.code === "MCP_UNAUTHORIZED" ? old : plain);
}

/** Servers that fall over the question, or do not answer it, may still know the old handshake. */
function wantsPlain(error: HostError, sdk: Sdk): boolean {
  const status = httpStatusOf(error, sdk);
  if (status !== undefined) return status >= 500;
  return error.code === "MCP_ANSWER" || (error.code === "MCP_TIMEOUT" && error.cause !== undefined);
}

/** As the specification has it for servers of before 2025: the POST of the handshake is refused as such. */
function knowsNoPost(error: HostError, sdk: Sdk): boolean {
  const status = httpStatusOf(error, sdk);
  return status !== undefined && status >= 400 && status < 500 && ![401, 403, 407, 408, 429].includes(status);
}

function isAddress(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}

function outcome(shaken: Handshake): McpConnection {
  if (shaken.kind === "connected") return shaken.connection;
  throw shaken.error;
}

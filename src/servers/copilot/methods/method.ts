import type { Client } from "../clients/client.ts";
import type { Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";

/** A request of a client and where it came from. */
export interface Call {
  readonly server: ServerContext;
  readonly client: Client;
  readonly params: Params;
  /** Fires when the client cancels the request, or has gone. */
  signal(): AbortSignal;
}

/** Answers one method. What it throws is the answer, too. */
export type Method = (call: Call) => unknown;

/** Methods by name. */
export type MethodFamily = Readonly<Record<string, Method>>;

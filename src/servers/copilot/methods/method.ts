import type { Client } from "../clients/client.ts";
import type { Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";

/** A client's request and its context. */
export interface Call {
  readonly server: ServerContext;
  readonly client: Client;
  readonly params: Params;
  /** Fires when the client cancels the request or disconnects. */
  signal(): AbortSignal;
}

/** Answers one method. An exception becomes the error response. */
export type Method = (call: Call) => unknown;

/** Methods by name. */
export type MethodFamily = Readonly<Record<string, Method>>;

import type { JSONRPCMessage, StandardSchemaV1, Transport } from "@modelcontextprotocol/client";
import type { ConnectionEnd } from "./connection.ts";

/** A transport of the SDK that also knows how it ended. It is connected once and ends once. */
export interface ServerLink extends Transport {
  /** Why it is over; undefined while it is not. Set before `onclose` is called. */
  readonly end: ConnectionEnd | undefined;
  /** Settles when it is over. Never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  /** Takes a message that is known not to be nested too deeply; whether others are is for `onmessage` to find out. */
  onshallow?: ((message: JSONRPCMessage) => void) | undefined;
  /** Takes the id of an answer that is too long to be read; false: it belongs to nobody. */
  onunreadable?: ((id: number, message: string) => boolean) | undefined;
  /** Of a local server. */
  readonly pid: number | undefined;
  /** Ends it because nothing can come of it any more. */
  lose(message: string): void;
  /** Ends it, and waits until nothing is left of what it started. */
  close(): Promise<void>;
}

/** The official SDK's client side. */
export type Sdk = typeof import("@modelcontextprotocol/client");

/** Loaded when a server is first connected to: it takes longer than a command line that needs none may take. */
export function loadSdk(): Promise<Sdk> {
  return import("@modelcontextprotocol/client");
}

/** A schema for the SDK that accepts every value: what it lets through is read where it is used. */
export const anything: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "skillhost", validate: (value) => ({ value }) },
};

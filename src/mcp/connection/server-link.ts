import type { JSONRPCMessage, StandardSchemaV1, Transport } from "@modelcontextprotocol/client";
import type { ConnectionEnd } from "./connection.ts";

/** An SDK transport that also knows how it ended. It connects once and ends once. */
export interface ServerLink extends Transport {
  /** Why it ended; undefined until then. Set before `onclose` is called. */
  readonly end: ConnectionEnd | undefined;
  /** Settles when it has ended. Never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  /** Receives messages whose depth has been checked. `onmessage` checks it itself. */
  onshallow?: ((message: JSONRPCMessage) => void) | undefined;
  /** Receives the id of an answer that cannot be read. Returns false if no request waits for it. */
  onunreadable?: ((id: number, message: string) => boolean) | undefined;
  /** Of a local server. */
  readonly pid: number | undefined;
  /** Ends it because of a fault. */
  lose(message: string): void;
  /** Ends it, and waits until everything that it started has ended. */
  close(): Promise<void>;
}

/** The client side of the official SDK. */
export type Sdk = typeof import("@modelcontextprotocol/client");

/** Imported with the first connection: it takes too long for commands that connect to no server. */
export function loadSdk(): Promise<Sdk> {
  return import("@modelcontextprotocol/client");
}

/** A schema for the SDK that accepts every value. Values are checked where they are used. */
export const anything: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "skillhost", validate: (value) => ({ value }) },
};

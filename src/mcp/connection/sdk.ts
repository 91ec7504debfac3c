/** The official SDK's client side. */
export type Sdk = typeof import("@modelcontextprotocol/client");

/** Loaded when a server is first connected to: it takes longer than a command line that needs none may take. */
export function loadSdk(): Promise<Sdk> {
  return import("@modelcontextprotocol/client");
}

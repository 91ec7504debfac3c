import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { HostError, toError } from "../../../base/errors.ts";
import { ConnectionGate } from "../../../io/net/connection-gate.ts";
import type { CopilotServer } from "../copilot-server.ts";
import type { Wire } from "./wire.ts";

export interface Listening extends AsyncDisposable {
  readonly port: number;
}

const limits = { maxConnections: 256, admissionMs: 5_000 };

/** Accepts clients on a TCP port; 0: any free port. @throws HostError `COPILOT_LISTEN` when listening fails. */
export async function listenForClients(
  server: CopilotServer,
  { port, host }: { readonly port: number; readonly host: string },
): Promise<Listening> {
  const wires = new Map<Socket, Wire>();
  const gate = new ConnectionGate(limits);
  const listener = createServer({ noDelay: true }, (socket) => {
    if (!gate.add(socket)) return;
    socket.on("close", () => wires.delete(socket));
    // The connection is broken, so the error cannot be reported to the client.
    socket.on("error", () => socket.destroy());
    const { wire, admitted } = server.accept({
      input: socket,
      output: {
        write: (text) => void (socket.writable && socket.write(text)),
        get pendingBytes() {
          return socket.writableLength;
        },
      },
    });
    wires.set(socket, wire);
    void admitted.then(() => gate.admit(socket));
    void wire.closed.then(() => endSocket(socket));
  });
  try {
    listener.listen(port, host);
    await once(listener, "listening");
  } catch (cause) {
    throw new HostError("COPILOT_LISTEN", `Cannot listen on ${host}:${port}: ${toError(cause).message}`, { cause });
  }
  return {
    port: (listener.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(listener, "close");
      listener.close();
      // Closing a wire flushes it first.
      for (const wire of wires.values()) wire.close();
      await closed;
    },
  };
}

const flushMs = 2_000;

/** Closes a socket after the client has taken what was written, or after a while. */
function endSocket(socket: Socket): void {
  socket.destroySoon();
  const late = setTimeout(() => socket.destroy(), flushMs);
  socket.once("close", () => clearTimeout(late));
}

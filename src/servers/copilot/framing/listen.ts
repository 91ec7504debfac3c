import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { HostError, toError } from "../../../base/errors.ts";
import type { CopilotServer } from "../server.ts";

export interface Listening extends AsyncDisposable {
  readonly port: number;
}

/** Takes clients on at a TCP port; 0: any that is free. @throws HostError `COPILOT_LISTEN` when it cannot be listened on. */
export async function listenForClients(
  server: CopilotServer,
  { port, host }: { readonly port: number; readonly host: string },
): Promise<Listening> {
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // The line is closed then; there is nobody left to tell.
    socket.on("error", () => socket.destroy());
    const { wire } = server.accept({
      input: socket,
      output: {
        write: (text) => void (socket.writable && socket.write(text)),
        get pendingBytes() {
          return socket.writableLength;
        },
      },
    });
    void wire.closed.then(() => socket.end());
  });
  try {
    listener.listen(port, host);
    await once(listener, "listening");
  } catch (cause) {
    throw new HostError("COPILOT_LISTEN", `${host}:${port} cannot be listened on: ${toError(cause).message}`, { cause });
  }
  return {
    port: (listener.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(listener, "close");
      listener.close();
      for (const socket of sockets) socket.destroySoon();
      await closed;
    },
  };
}

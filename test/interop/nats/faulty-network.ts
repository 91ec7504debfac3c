import { createServer, connect as dial, type Server, type Socket } from "node:net";

/** The network between one client and its server, which can fail. It begins and ends whole. */
export class FaultyNetwork implements AsyncDisposable {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [client: Socket, server: Socket]>();
  #isDown = false;
  #isMute = false;
  #delay = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Settles when clients can connect, to what listens at that port of this machine. */
  static async start(port: number): Promise<FaultyNetwork> {
    const listening = createServer();
    const network = new FaultyNetwork(listening);
    listening.on("connection", (client) => network.#join(client, port));
    await new Promise<void>((resolve, reject) => void listening.once("error", reject).listen(0, "127.0.0.1", resolve));
    return network;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { readonly port: number }).port}`;
  }

  /** Until `up`, nothing connects. */
  down(): void {
    this.#isDown = true;
    this.cut();
  }

  up(): void {
    this.#isDown = false;
    this.#isMute = false;
  }

  /** Ends the connections of now. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    this.#isMute = false;
  }

  /** Until `cut`, what the server answers is lost, and what it is sent arrives. */
  mute(): void {
    this.#isMute = true;
  }

  /** From now on everything takes this many milliseconds each way, in its order. */
  slow(milliseconds: number): void {
    this.#delay = milliseconds;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.down();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, port: number): void {
    if (this.#isDown) return void client.destroy();
    const server = dial(port, "127.0.0.1");
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const socket of pair) {
      socket.setNoDelay(true);
      // The other one is destroyed with it.
      socket.on("error", () => {});
      socket.once("close", () => {
        this.#pairs.delete(pair);
        for (const one of pair) one.destroy();
      });
    }
    client.on("data", (data) => this.#pass(data, server));
    server.on("data", (data) => {
      if (!this.#isMute) this.#pass(data, client);
    });
  }

  #pass(data: Buffer, to: Socket): void {
    if (this.#delay === 0) to.write(data);
    else setTimeout(() => void (to.destroyed || to.write(data)), this.#delay);
  }
}

import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import tls from "node:tls";
import type { ChildFrame } from "./child-frames.ts";

interface Waiting {
  connect(path: string): void;
  fail(error: Error): void;
}

/**
 * Makes connections of this process through the host, which is the only way out of an enclosed process. Returns the receiver of the host's
 * answers. This is for the convenience of the code here: what it may reach is decided by the host.
 */
export function connectThroughHost(send: (frame: ChildFrame) => void): (frame: ChildFrame) => void {
  const waiting = new Map<number, Waiting>();
  let last = 0;
  const direct = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function connect(this: net.Socket, ...args: unknown[]): net.Socket {
    const [options, listener] = readConnect(args);
    const { host = "localhost", port } = options;
    if (typeof options.path === "string" || port === undefined) return Reflect.apply(direct, this, args) as net.Socket;
    if (listener !== undefined) this.once("connect", listener);
    const connection = ++last;
    // As if it were connecting already, so that what is written waits.
    Object.assign(this, { connecting: true, _host: host });
    waiting.set(connection, {
      connect: (path) => {
        if (this.destroyed) return;
        // Node.js resets the state of a stream that gets its handle, which would forget that it was ended before it was connected.
        Object.assign(this, { connecting: false, _undestroy: () => {} });
        Reflect.apply(direct, this, [{ path }]);
        Reflect.deleteProperty(this, "_undestroy");
      },
      fail: (error) => this.destroy(error),
    });
    send({ kind: "connect", connection, host: String(host), port: Number(port) });
    return this;
  } as typeof direct;
  const directTls = tls.connect as (...args: unknown[]) => tls.TLSSocket;
  tls.connect = ((...args: unknown[]) => {
    const [options, listener] = readConnect(args);
    if (options.socket !== undefined || typeof options.path === "string") return directTls(...args);
    const { host = "localhost", port } = options;
    const socket = net.connect({ host: String(host), port: Number(port) });
    const secured = directTls({ ...options, host, port, socket }, ...(listener === undefined ? [] : [listener]));
    socket.once("error", (error) => secured.destroy(error));
    return secured;
  }) as typeof tls.connect;
  // For `import { connect } from "node:tls"`.
  syncBuiltinESMExports();
  return ({ connection, path, error, code }) => {
    const asked = waiting.get(Number(connection));
    waiting.delete(Number(connection));
    if (typeof path === "string") asked?.connect(path);
    else asked?.fail(Object.assign(new Error(String(error)), { code }));
  };
}

interface ConnectOptions {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly path?: unknown;
  readonly socket?: unknown;
}

/** The forms of `connect(options)`, `connect(port, host?)` and `connect(path)`, and Node.js's own, an array of options and listener. */
function readConnect(args: readonly unknown[]): readonly [ConnectOptions, (() => void) | undefined] {
  const given = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
  const [first, second] = given;
  const listener = given.findLast((each) => typeof each === "function") as (() => void) | undefined;
  const extra = given.slice(1).find((each) => typeof each === "object" && each !== null) as ConnectOptions | undefined;
  if (typeof first === "object" && first !== null) return [{ ...(first as ConnectOptions), ...extra }, listener];
  if (typeof first === "string" && !/^\d+$/.test(first)) return [{ path: first, ...extra }, listener];
  return [{ port: first, ...(typeof second === "string" && { host: second }), ...extra }, listener];
}

// A client of HTTP on one connection that costs little, so that the server is measured and not the client.
import { connect } from "node:net";

/** Gives a function that sends a body, one request at a time, and gives status, headers and text of the response. */
export function openConnection(url) {
  const { hostname, port, pathname, host } = new URL(url);
  let socket;
  let received = "";
  let waiting;
  const settle = (outcome, value) => {
    const settled = waiting;
    waiting = undefined;
    settled?.[outcome](value);
  };
  // Servers close connections that are idle for some seconds, as they are between rounds.
  const open = () => {
    received = "";
    socket = connect(Number(port), hostname).setNoDelay(true).setEncoding("latin1");
    socket.on("error", (error) => settle("reject", error));
    socket.on("close", () => settle("reject", new Error("The connection was closed.")));
    socket.on("data", (piece) => {
      received += piece;
      const response = parseResponse(received);
      if (response === undefined) return;
      received = "";
      settle("resolve", response);
    });
  };
  return {
    send(body, headers) {
      if (socket === undefined || socket.destroyed || socket.readableEnded) open();
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(
        `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${lines.join("")}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
      });
    },
    close: () => socket?.destroy(),
  };
}

/** A whole response. Undefined: more of it has to come. */
function parseResponse(text) {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [first, ...lines] = text.slice(0, end).split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const status = Number(first.split(" ")[1]);
  const rest = text.slice(end + 4);
  if (headers["transfer-encoding"] === "chunked")
    return rest.endsWith("0\r\n\r\n") ? { status, headers, text: joinChunks(rest) } : undefined;
  return rest.length >= Number(headers["content-length"] ?? 0) ? { status, headers, text: rest } : undefined;
}

function joinChunks(text) {
  let whole = "";
  for (let at = 0; ; ) {
    const line = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, line), 16);
    if (!(size > 0)) return whole;
    whole += text.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}

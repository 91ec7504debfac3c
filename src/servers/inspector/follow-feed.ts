import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { FeedMessage } from "./feed-messages.ts";

/** A longer message ends the connection. In UTF-16 units. */
const longestMessage = 256 * 1024 * 1024;

/**
 * Reads the feed of a running inspector on this machine until the signal fires or the inspector ends. Messages come in order.
 * @param address what skillhost printed: `http://127.0.0.1:<port>/#token=<token>`
 * @throws HostError `INSPECTOR_ADDRESS` for another address, `INSPECTOR_UNREACHABLE`, `INSPECTOR_TOKEN`.
 */
export async function* followFeed(address: string, signal: AbortSignal): AsyncGenerator<FeedMessage> {
  const { url, token } = parseAddress(address);
  const response = await fetch(new URL("/feed", url), { headers: { Authorization: `Bearer ${token}` }, signal, redirect: "error" }).catch(
    (cause: unknown) => {
      signal.throwIfAborted();
      throw new HostError("INSPECTOR_UNREACHABLE", `No inspector answers at ${url.origin} (${errorMessage(cause)}). Is its host running?`, {
        cause,
      });
    },
  );
  if (response.status === 401)
    throw new HostError("INSPECTOR_TOKEN", "The token of this address is not that of the inspector, which changes with each start.");
  if (!response.ok || response.body === null || !response.headers.get("content-type")?.startsWith("text/event-stream"))
    throw new HostError("INSPECTOR_UNREACHABLE", `What answers at ${url.origin} is not an inspector (status ${response.status}).`);
  let rest = "";
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body) {
      const events = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n\n");
      rest = events.pop() ?? "";
      if (rest.length > longestMessage) throw new HostError("INSPECTOR_UNREACHABLE", "A message of the inspector is too long.");
      for (const event of events) {
        const message = parseMessage(event);
        if (message !== undefined) yield message;
      }
    }
  } catch (error) {
    if (signal.aborted || error instanceof HostError) throw error;
    // The host has ended: so has its feed.
  }
}

function parseAddress(address: string): { readonly url: URL; readonly token: string } {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const token = /^#token=([\w-]+)$/.exec(url?.hash ?? "")?.[1];
  const isLocal = url?.protocol === "http:" && ["127.0.0.1", "localhost"].includes(url.hostname);
  if (url === undefined || token === undefined || !isLocal)
    throw new HostError(
      "INSPECTOR_ADDRESS",
      "This is not the address of an inspector. Give the one that skillhost printed, in quotes: http://127.0.0.1:<port>/#token=<token>.",
    );
  return { url, token };
}

function parseMessage(event: string): FeedMessage | undefined {
  const data = event.split("\n").find((line) => line.startsWith("data: "));
  if (data === undefined) return undefined;
  try {
    const message: unknown = JSON.parse(data.slice("data: ".length));
    return isRecord(message) && typeof message["type"] === "string" ? (message as unknown as FeedMessage) : undefined;
  } catch {
    // Something between the inspector and this reader damaged it.
    return undefined;
  }
}

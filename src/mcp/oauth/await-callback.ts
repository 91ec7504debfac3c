import { timingSafeEqual } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import type { LoopbackCallback } from "../../io/net/loopback-callback.ts";
import type { Asks } from "../../tools/tool.ts";

/**
 * Has a person sign in at an address. The answer is the address that their browser came back to; it is not needed when
 * the browser runs on this machine, where a listener waits for it: then the signal fires, and the question can be taken
 * back. Rejecting means that nobody signs in.
 */
export type Authorize = (data: Asks["authorization"]["data"], signal: AbortSignal) => Promise<Asks["authorization"]["answer"]>;

/** Waits until a person has signed in; what came back with them. The first answer counts, by the listener or by `authorize`. */
export async function awaitCallback(
  request: { readonly serverName: string; readonly url: string; readonly state: string; readonly callback: LoopbackCallback },
  authorize: Authorize,
  signal: AbortSignal,
): Promise<URLSearchParams> {
  const { serverName, url, state, callback } = request;
  const over = new AbortController();
  const waiting = AbortSignal.any([signal, over.signal]);
  const byBrowser = callback.received((address) => hasState(address.searchParams, state), waiting);
  const byAnswer = authorize({ serverName, url, redirectUrl: callback.url }, waiting).then((answer) =>
    checkAnswer(answer, callback.url, state),
  );
  // Whoever loses is told so by the signal, and has nothing to say any more.
  for (const loser of [byBrowser, byAnswer]) loser.catch(() => {});
  try {
    return (await Promise.race([byBrowser, byAnswer])).searchParams;
  } finally {
    over.abort(new HostError("OAUTH_ANSWERED", "The sign-in is over."));
  }
}

function checkAnswer(answer: unknown, redirectUrl: string, state: string): URL {
  const text = (answer as { callbackUrl?: unknown } | undefined)?.callbackUrl;
  const address = typeof text === "string" && URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  const expected = new URL(redirectUrl);
  if (address?.origin !== expected.origin || address.pathname !== expected.pathname) {
    throw new HostError("OAUTH_CALLBACK", `the answer is not an address that begins with ${redirectUrl}`);
  }
  if (!hasState(address.searchParams, state))
    throw new HostError("OAUTH_CALLBACK", "the answer is that of another sign-in (its state differs)");
  return address;
}

function hasState(params: URLSearchParams, state: string): boolean {
  const [given, ...more] = params.getAll("state").map((text) => Buffer.from(text));
  const expected = Buffer.from(state);
  return given !== undefined && more.length === 0 && given.length === expected.length && timingSafeEqual(given, expected);
}

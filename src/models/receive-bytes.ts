import { errorMessage, toError } from "../base/errors.ts";
import { type Clock, waitFor } from "../base/wait.ts";
import { ModelError, type RequestErrors } from "./model-error.ts";

export interface Receiving {
  readonly fault: RequestErrors;
  readonly clock: Clock;
  readonly idleTimeout: number;
  readonly maxBytes: number;
  /** Aborts the request, with a `ModelError` as the reason. */
  readonly controller: AbortController;
  /** Receives the number of bytes so far. */
  readonly onBytes: (total: number) => void;
}

/** The chunks of a body, within the limits of time and size. Throws only `ModelError`. */
export async function* readBytes(
  body: AsyncIterable<Uint8Array> | null,
  receiving: Receiving,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (body === null) return;
  const { fault, controller, idleTimeout, maxBytes } = receiving;
  const silent = `sent nothing more for ${idleTimeout} ms in the middle of its answer.`;
  const timer = receiving.clock.after(idleTimeout, () => controller.abort(fault("MODEL_UNREACHABLE", silent, { retryable: true })));
  const iterator = body[Symbol.asyncIterator]();
  let total = 0;
  try {
    for (;;) {
      const piece = await next(iterator, receiving);
      if (piece === undefined) return;
      timer.restart();
      // Empty chunks count too, so that an endless body of empty chunks ends.
      total += Math.max(1, piece.byteLength);
      receiving.onBytes(total);
      if (total > maxBytes) throw fault("MODEL_BAD_ANSWER", `sent more than ${maxBytes} bytes in one answer.`, { retryable: false });
      yield piece;
    }
  } finally {
    timer[Symbol.dispose]();
    // Not awaited, because a body may never end; the request is aborted as well.
    Promise.resolve()
      .then(() => iterator.return?.())
      .catch(() => {});
  }
}

/** The first bytes as UTF-8 text, without waiting for the rest. Read errors are ignored, because the text only explains an error. */
export async function readText(bytes: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let left = maxBytes;
  try {
    for await (const piece of bytes) {
      text += decoder.decode(piece.subarray(0, left), { stream: true });
      left -= piece.byteLength;
      if (left <= 0) break;
    }
  } catch (error) {
    if (error instanceof ModelError && error.code === "MODEL_ABORTED") throw error;
  }
  return text;
}

/** The error of a request that the transport ended: the abort reason, or the transport's error. */
export function receiveFailure(error: unknown, signal: AbortSignal, fault: RequestErrors, happened: string): ModelError {
  if (signal.reason instanceof ModelError) return signal.reason;
  // The runtime's fetch throws "fetch failed" with the reason in `cause`.
  const outer = toError(error);
  const problem: Error = outer.cause === undefined ? outer : toError(outer.cause);
  const cause = new Error(fault.quote(errorMessage(problem)));
  // Only the redacted message of the original error is kept, because the error may contain the request.
  cause.stack = `${cause.name}: ${cause.message}`;
  const code = codeOf(problem);
  const shown = code ?? fault.quote(errorMessage(problem));
  if (code !== undefined && /^(?:Z_|HPE_|ERR_BROTLI|ERR__ERROR|WS_ERR_)/.test(code))
    return fault("MODEL_BAD_ANSWER", `sent data that cannot be decoded (${shown}).`, { retryable: false, cause });
  if (code !== undefined && /CERT|TLS|SSL|SELF_SIGNED/.test(code))
    return fault("MODEL_UNREACHABLE", `has a certificate that is not trusted (${shown}).`, { retryable: false, cause });
  return fault("MODEL_UNREACHABLE", `${happened} (${shown}). Check the base URL and the network.`, { retryable: true, cause });
}

async function next(iterator: AsyncIterator<Uint8Array>, { controller, fault }: Receiving): Promise<Uint8Array | undefined> {
  let piece: IteratorResult<unknown>;
  try {
    piece = await waitFor(
      Promise.resolve().then(() => iterator.next()),
      { signal: controller.signal },
    );
  } catch (error) {
    throw receiveFailure(error, controller.signal, fault, "closed the connection in the middle of its answer");
  }
  if (piece.done === true) return undefined;
  if (piece.value instanceof Uint8Array) return piece.value;
  throw fault("MODEL_BAD_ANSWER", "sent an answer whose body is not bytes.", { retryable: false });
}

function codeOf(error: Error): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : undefined;
}

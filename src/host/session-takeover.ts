import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { isRecord } from "../base/json.ts";
import { type FileLock, type LockHolder, lockHolder, takeFileLock } from "../io/file-lock.ts";

/** How the owner of a session answers a process that wants to take it over: undefined to hand it over, else why it does not. */
export type HandOver = (sessionId: string, claimant: LockHolder) => string | undefined;

interface Owned {
  readonly sessionId: string;
  /** The lock file of the session's log. */
  readonly lock: string;
}

const pollMs = 200;

/**
 * Answers the claims of other processes for sessions that this process owns. A claim is a lock file beside the session's own, so that
 * there is at most one, and that of a process that was killed counts for nothing. Claims are looked for at intervals: this works on
 * every file system, also where changes are not reported.
 */
export class TakeoverListener {
  readonly #handOver: HandOver;
  readonly #owned = new Set<Owned>();
  readonly #refused = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(handOver: HandOver) {
    this.#handOver = handOver;
  }

  /** Answers claims for a session until this is disposed. */
  own(sessionId: string, lock: string): Disposable {
    const owned = { sessionId, lock };
    this.#owned.add(owned);
    this.#timer ??= setInterval(() => this.#look(), pollMs).unref();
    return {
      [Symbol.dispose]: () => {
        this.#owned.delete(owned);
        this.#refused.delete(lock);
        if (this.#owned.size > 0) return;
        clearInterval(this.#timer);
        this.#timer = undefined;
      },
    };
  }

  #look(): void {
    for (const owned of this.#owned) {
      const claimant = tryClaimantOf(owned.lock);
      if (claimant === undefined || this.#refused.get(owned.lock) === claimant.token) continue;
      const reason = this.#handOver(owned.sessionId, claimant);
      if (reason !== undefined) this.#refused.set(owned.lock, claimant.token);
      answer(owned.lock, { token: claimant.token, reason });
    }
  }
}

export type Takeover =
  | { readonly kind: "held"; readonly lock: FileLock }
  /** The owner keeps the session, or another process was faster. */
  | { readonly kind: "refused"; readonly holder: LockHolder | undefined; readonly reason: string };

/**
 * Takes the lock of a session from the process that owns it, if that agrees. The owner has closed the session before it releases the
 * lock, so there is never a second writer. Of several processes at once, one wins.
 */
export async function takeOver(path: string, owner: LockHolder, timeout: number): Promise<Takeover> {
  const claim = await takeFileLock(claimOf(path));
  if (claim.kind === "taken") return { kind: "refused", holder: owner, reason: "Another process is taking it over at this moment." };
  const own = claimantOf(path);
  try {
    let until = performance.now() + timeout;
    for (let isAccepted = false; ; ) {
      const holder = lockHolder(path);
      if (holder === undefined) {
        const taken = await takeFileLock(path);
        if (taken.kind === "held") return taken;
      } else if (holder === "unknown" || holder.token !== owner.token) {
        return { kind: "refused", holder: holder === "unknown" ? undefined : holder, reason: "It was faster at taking it over." };
      }
      const given = readAnswer(path, own?.token);
      if (given?.reason !== undefined) return { kind: "refused", holder: owner, reason: given.reason };
      // What is accepted ends in time, or with the owner's process.
      if (given !== undefined && !isAccepted) {
        isAccepted = true;
        until = performance.now() + closingMs;
      }
      if (performance.now() > until) return { kind: "refused", holder: owner, reason: "It did not answer the request to hand it over." };
      await delay(20);
    }
  } finally {
    rmSync(answerOf(path), { force: true });
    claim.lock.release();
  }
}

/** How long an owner that agreed may take to close the session. */
const closingMs = 60_000;

interface Answer {
  readonly token: string;
  readonly reason?: string | undefined;
}

function answer(path: string, given: Answer): void {
  try {
    writeFileSync(answerOf(path), JSON.stringify(given), { mode: 0o600 });
  } catch {
    // The claimant is refused when its time is over, or finds the lock free.
  }
}

function readAnswer(path: string, token: string | undefined): Answer | undefined {
  try {
    const given: unknown = JSON.parse(readFileSync(answerOf(path), "utf8"));
    if (!isRecord(given) || typeof given["token"] !== "string" || given["token"] !== token) return undefined;
    return { token: given["token"], ...(typeof given["reason"] === "string" && { reason: given["reason"] }) };
  } catch {
    // There is no answer yet, or it is incomplete.
    return undefined;
  }
}

function claimantOf(path: string): LockHolder | undefined {
  const holder = lockHolder(claimOf(path));
  return holder === "unknown" ? undefined : holder;
}

function tryClaimantOf(path: string): LockHolder | undefined {
  try {
    return claimantOf(path);
  } catch {
    // For example no free file descriptor. A timer has no caller to handle the error; the next look finds the claim.
    return undefined;
  }
}

function claimOf(lock: string): string {
  return `${lock}.claim`;
}

function answerOf(lock: string): string {
  return `${lock}.answer`;
}

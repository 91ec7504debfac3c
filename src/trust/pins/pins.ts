import { WorkSlices } from "../../base/wait.ts";
import { type Approval, type ApprovalScope, type ApprovalStore, oldestFirst } from "../approvals.ts";
import { approvalId, isAmong, nothingSeen, type PinSubject, placeOf, type SeenOfServer, type SeenPin, SeenPins } from "./seen-pins.ts";

/**
 * When the definitions of a server or a skill are trusted. `first-use`: the first version is pinned, and a changed one is
 * withheld until it is approved. `require`: only approved definitions are offered. `off`: all definitions are offered.
 */
export type PinPolicy = "first-use" | "require" | "off";

/** `changed`: other content was pinned or approved earlier; `before` is the newest. */
export type PinVerdict = { readonly kind: "accepted" } | { readonly kind: "new" } | { readonly kind: "changed"; readonly before: unknown };

export interface PinsOptions {
  readonly approvals: ApprovalStore;
  readonly policy: PinPolicy;
  /** The family of all subjects: the part of their kinds before the first dash. Default: `mcp`. */
  readonly family?: string;
  /** Called when a pin could not be stored: it is valid only in this process then. */
  readonly onError: (error: Error) => void;
}

/**
 * The definitions of servers and skills, and which of them are trusted. All decisions are made when lists are published, never
 * when a tool is called.
 */
export class Pins {
  readonly policy: PinPolicy;
  readonly #approvals: ApprovalStore;
  readonly #onError: (error: Error) => void;
  readonly #family: string;
  readonly #seen: SeenPins;

  constructor({ approvals, policy, family = "mcp", onError }: PinsOptions) {
    this.policy = policy;
    this.#approvals = approvals;
    this.#onError = onError;
    this.#family = family;
    this.#seen = SeenPins.of(approvals, family);
  }

  /**
   * Decides for each subject of an owner, in order, whether it may be offered. With `first-use`, new subjects are pinned.
   * Rejects when the approvals cannot be read, because nothing is known to be trusted then.
   */
  async judge(owner: string, subjects: readonly PinSubject[]): Promise<readonly PinVerdict[]> {
    if (this.policy === "off") return subjects.map(() => accepted);
    const seen = this.policy === "first-use" ? await this.#seen.read(owner) : nothingSeen;
    const slices = new WorkSlices(looksAtOnce);
    const isTrusted: boolean[] = [];
    for (const subject of subjects) {
      const isSeen = isAmong(seen, subject);
      isTrusted.push(isSeen || (await this.#isApproved(subject)));
      // Each lookup of an approval may read a file.
      if (!isSeen) await slices.spend(1);
    }
    const unknown = subjects.filter((_, index) => !isTrusted[index]);
    if (unknown.length === 0) return subjects.map(() => accepted);
    // The newest approval of each subject.
    const places = new Map(unknown.map((subject) => [`${subject.kind} ${approvalId(subject)}`, placeOf(subject)]));
    const approved = new Map<string, SeenPin>();
    for (const kind of new Set(unknown.map((subject) => subject.kind))) {
      for (const { id, digest, detail } of oldestFirst(await this.#approvals.list({ kind, scope: user }))) {
        const place = places.get(`${kind} ${id}`);
        if (place !== undefined) approved.set(place, { digest, content: detail });
      }
    }
    // Includes subjects that were pinned during the await; the rest is synchronous.
    const verdicts = this.#judgeUnknown(unknown, approved, [seen, this.#seen.unkept(owner)]);
    if (this.policy === "first-use") {
      const fresh = unknown.filter((subject) => verdicts.get(subject) === unseen);
      if (fresh.length > 0) this.#seen.keep(owner, fresh, this.#onError);
    }
    return subjects.map((subject, index) => (isTrusted[index] ? accepted : this.#asPolicyHasIt(verdicts.get(subject)!)));
  }

  /** Approves these for this user. Settles when the approvals are stored. */
  async approve(subjects: readonly PinSubject[]): Promise<void> {
    for (let from = 0; from < subjects.length; from += atOnce) {
      await Promise.all(subjects.slice(from, from + atOnce).map((subject) => this.#approvals.remember(toApproval(subject))));
    }
    this.#seen.notifyApproved();
  }

  /**
   * Transfers the pins of a name that several owners used to one owner. With `first-use` they move, so that the next owner of
   * that name gets none (`taken`). With `require` an approval is not transferred: `refused`, until the owner has its own.
   * Undefined: the name has no pins.
   */
  async takeOver(owner: string, former: string): Promise<"taken" | "refused" | undefined> {
    if (this.policy === "off") return undefined;
    const kinds = ["tool", "skill", "instructions"].map((part) => `${this.#family}-${part}`);
    const kept = (await Promise.all(kinds.map((kind) => this.#approvals.list({ kind, scope: user })))).flat();
    const approved = (of: string): readonly Approval[] => kept.filter(({ id }) => id.startsWith(`${of}/`));
    const old = approved(former);
    if (this.policy === "require") return old.length > 0 && approved(owner).length === 0 ? "refused" : undefined;
    const hasSeen = await this.#seen.move(former, owner);
    for (const approval of old) {
      const { kind, id, digest } = approval;
      await this.#approvals.remember({ ...approval, id: owner + id.slice(former.length) });
      await this.#approvals.forget({ kind, id, digest, scope: user });
    }
    return hasSeen || old.length > 0 ? "taken" : undefined;
  }

  /** Notifies of approvals by all users of the store in this process. */
  subscribe(listener: () => void): Disposable {
    return this.#seen.onApproved(listener);
  }

  /** Settles when all pins so far are stored, or could not be. */
  kept(): Promise<void> {
    return this.#seen.kept();
  }

  #judgeUnknown(
    unknown: readonly PinSubject[],
    approved: ReadonlyMap<string, SeenPin>,
    seen: readonly SeenOfServer[],
  ): ReadonlyMap<PinSubject, PinVerdict> {
    const verdicts = new Map<PinSubject, PinVerdict>();
    for (const subject of unknown) {
      const place = placeOf(subject);
      const newest = approved.get(place) ?? seen.flatMap((one) => one.get(place) ?? []).at(-1);
      const before: PinVerdict = newest === undefined ? unseen : { kind: "changed", before: newest.content };
      verdicts.set(subject, seen.some((one) => isAmong(one, subject)) ? accepted : before);
    }
    return verdicts;
  }

  #asPolicyHasIt(verdict: PinVerdict): PinVerdict {
    return verdict === unseen && this.policy === "first-use" ? accepted : verdict;
  }

  #isApproved(subject: PinSubject): boolean | Promise<boolean> {
    return this.#approvals.has({ kind: subject.kind, id: approvalId(subject), digest: subject.digest }, userOnly);
  }
}

const user: ApprovalScope = Object.freeze({ kind: "user" });
const userOnly: readonly ApprovalScope[] = Object.freeze([user]);
const accepted: PinVerdict = Object.freeze({ kind: "accepted" });
const unseen: PinVerdict = Object.freeze({ kind: "new" });

/** The number of lookups before the event loop runs again. */
const looksAtOnce = 500;
// A store may consist of files, each with its own delay.
const atOnce = 8;
// Stores accept details of up to a megabyte. An approval without the definition is valid, but its diff cannot be shown.
const maxDetail = 400_000;

function toApproval(subject: PinSubject): Approval {
  const { kind, digest, content } = subject;
  const isShort = JSON.stringify(content).length <= maxDetail;
  return { kind, id: approvalId(subject), digest, scope: user, approvedAt: new Date().toISOString(), ...(isShort && { detail: content }) };
}

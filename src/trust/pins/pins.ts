import { WorkSlices } from "../../base/work-slices.ts";
import { type Approval, type ApprovalScope, type ApprovalStore, oldestFirst } from "../approvals.ts";
import { approvalId, isAmong, nothingSeen, type PinSubject, placeOf, type SeenOfServer, type SeenPin, SeenPins } from "./seen-pins.ts";

/**
 * When what a server or a skill tells of itself is believed. `first-use`: what is seen first is kept, and what differs from it
 * later is held back until somebody approves it. `require`: nothing is offered that nobody approved. `off`: everything.
 */
export type PinPolicy = "first-use" | "require" | "off";

/** `changed`: other content was kept or approved before, the newest of it is `before`. */
export type PinVerdict = { readonly kind: "accepted" } | { readonly kind: "new" } | { readonly kind: "changed"; readonly before: unknown };

export interface PinsOptions {
  readonly approvals: ApprovalStore;
  readonly policy: PinPolicy;
  /** Of which sort all subjects are: the part of their kinds before the first dash. Default: `mcp`. */
  readonly family?: string;
  /** Hears when something could not be kept: it holds for this program only then. */
  readonly onError: (error: Error) => void;
}

/**
 * What servers and skills told of themselves, and what of it is trusted. Everything here is decided when lists are
 * published, never when a tool is called.
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
   * Says of each thing of an owner whether it may be offered, in their order. With `first-use`, what has never been seen
   * is kept from now on. Rejects when the approvals cannot be read, in which case nothing is known to be trusted.
   */
  async judge(owner: string, subjects: readonly PinSubject[]): Promise<readonly PinVerdict[]> {
    if (this.policy === "off") return subjects.map(() => accepted);
    const seen = this.policy === "first-use" ? await this.#seen.read(owner) : nothingSeen;
    const slices = new WorkSlices(looksAtOnce);
    const isTrusted: boolean[] = [];
    for (const subject of subjects) {
      const isSeen = isAmong(seen, subject);
      isTrusted.push(isSeen || (await this.#isApproved(subject)));
      // An approval that is looked up is a file.
      if (!isSeen) await slices.spend(1);
    }
    const unknown = subjects.filter((_, index) => !isTrusted[index]);
    if (unknown.length === 0) return subjects.map(() => accepted);
    const approved = await this.#approvedBefore(unknown);
    // What others saw while we waited; from here on there is no more waiting.
    const verdicts = this.#judgeUnknown(unknown, approved, [seen, this.#seen.unkept(owner)]);
    if (this.policy === "first-use") this.#keepNew(owner, unknown, verdicts);
    return subjects.map((subject, index) => (isTrusted[index] ? accepted : this.#asPolicyHasIt(verdicts.get(subject)!)));
  }

  /** Trusts these from now on, for this user. Settles when that is kept. */
  async approve(subjects: readonly PinSubject[]): Promise<void> {
    for (let from = 0; from < subjects.length; from += atOnce) {
      await Promise.all(subjects.slice(from, from + atOnce).map((subject) => this.#approvals.remember(toApproval(subject))));
    }
    this.#seen.tellApproved();
  }

  /**
   * Gives an owner what was kept under a name that more than one owner had. With `first-use` it moves, so that the next owner of that name
   * gets nothing of it (`taken`). With `require` an approval is not passed on: `refused`, until the owner has one of its own. Undefined:
   * there is nothing.
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

  /** Hears of approvals by whoever shares the store within this program. */
  subscribe(listener: () => void): Disposable {
    return this.#seen.onApproved(listener);
  }

  /** Settles when what was seen so far is kept, or could not be. */
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

  #keepNew(owner: string, unknown: readonly PinSubject[], verdicts: ReadonlyMap<PinSubject, PinVerdict>): void {
    const fresh = unknown.filter((subject) => verdicts.get(subject) === unseen);
    if (fresh.length > 0) this.#seen.keep(owner, fresh, this.#onError);
  }

  #isApproved(subject: PinSubject): boolean | Promise<boolean> {
    return this.#approvals.has({ kind: subject.kind, id: approvalId(subject), digest: subject.digest }, userOnly);
  }

  /** The newest approval of each. */
  async #approvedBefore(subjects: readonly PinSubject[]): Promise<ReadonlyMap<string, SeenPin>> {
    const places = new Map(subjects.map((subject) => [`${subject.kind} ${approvalId(subject)}`, placeOf(subject)]));
    const before = new Map<string, SeenPin>();
    for (const kind of new Set(subjects.map((subject) => subject.kind))) {
      for (const { id, digest, detail } of oldestFirst(await this.#approvals.list({ kind, scope: user }))) {
        const place = places.get(`${kind} ${id}`);
        if (place !== undefined) before.set(place, { digest, content: detail });
      }
    }
    return before;
  }
}

const user: ApprovalScope = Object.freeze({ kind: "user" });
const userOnly: readonly ApprovalScope[] = Object.freeze([user]);
const accepted: PinVerdict = Object.freeze({ kind: "accepted" });
const unseen: PinVerdict = Object.freeze({ kind: "new" });

/** Approvals that are looked up before other work of the process has its turn. */
const looksAtOnce = 500;
// A store may be files, each with a wait of its own.
const atOnce = 8;
// Stores take details of up to a megabyte. Without its definition an approval still holds; only the diff cannot be shown.
const maxDetail = 400_000;

function toApproval(subject: PinSubject): Approval {
  const { kind, digest, content } = subject;
  const isShort = JSON.stringify(content).length <= maxDetail;
  return { kind, id: approvalId(subject), digest, scope: user, approvedAt: new Date().toISOString(), ...(isShort && { detail: content }) };
}

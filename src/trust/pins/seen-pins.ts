import { sha256 } from "../../base/canonical-json.ts";
import { Emitter } from "../../base/emitter.ts";
import { toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { ApprovalScope, ApprovalStore } from "../approvals.ts";
import { digestOf } from "../folder-digests.ts";

/** One version of something of an owner. */
export interface SeenPin {
  readonly digest: string;
  /** Undefined: it was too long to be kept. */
  readonly content: unknown;
}

/** By kind and name; of several versions, the newest last. */
export type SeenOfServer = ReadonlyMap<string, readonly SeenPin[]>;

/**
 * What was seen first of servers and skills. It is kept in the store of approvals, under a kind of its own since nobody approved it,
 * and in one record for all that came at once: a server has hundreds of tools, and a store may take milliseconds for each
 * record. What is not kept yet, or could not be, counts all the same.
 */
export class SeenPins {
  readonly #approvals: ApprovalStore;
  readonly #unkept = new Set<Batch>();
  readonly #events: Emitter<{ approved: undefined }> = new Emitter(() => {});
  #writing: Promise<void> = Promise.resolve();

  readonly #kind: string;

  private constructor(approvals: ApprovalStore, family: string) {
    this.#approvals = approvals;
    this.#kind = `${family}-seen`;
  }

  /** One for each store and family: who judges next knows at once what is being written. */
  static of(approvals: ApprovalStore, family: string): SeenPins {
    const families = seenIn.get(approvals) ?? new Map<string, SeenPins>();
    seenIn.set(approvals, families);
    const seen = families.get(family) ?? new SeenPins(approvals, family);
    families.set(family, seen);
    return seen;
  }

  async read(owner: string): Promise<SeenOfServer> {
    const kept = await this.#approvals.list({ kind: this.#kind, id: owner, scope: user });
    return byPlace([...kept.flatMap(({ detail }) => readPins(detail)), ...this.#unkeptOf(owner)]);
  }

  /** Only what is not in the store, but as of now. */
  unkept(owner: string): SeenOfServer {
    return byPlace(this.#unkeptOf(owner));
  }

  /** Gives another owner what was seen of one. False: there is nothing. */
  async move(from: string, to: string): Promise<boolean> {
    const records = await this.#approvals.list({ kind: this.#kind, id: from, scope: user });
    for (const record of records) {
      await this.#approvals.remember({ ...record, id: to });
      await this.#approvals.forget({ kind: this.#kind, id: from, digest: record.digest, scope: user });
    }
    return records.length > 0;
  }

  /** Keeps them in the background. */
  keep(owner: string, subjects: readonly PinSubject[], onError: (error: Error) => void): void {
    for (const pins of inBatches(subjects)) {
      const batch: Batch = { owner, pins };
      this.#unkept.add(batch);
      this.#writing = this.#writing.then(() => this.#write(batch)).catch((error: unknown) => onError(toError(error)));
    }
  }

  kept(): Promise<void> {
    return this.#writing;
  }

  tellApproved(): void {
    this.#events.emit("approved", undefined);
  }

  onApproved(listener: () => void): Disposable {
    return this.#events.on("approved", listener);
  }

  #unkeptOf(owner: string): readonly NamedPin[] {
    return [...this.#unkept].filter((batch) => batch.owner === owner).flatMap(({ pins }) => pins);
  }

  async #write(batch: Batch): Promise<void> {
    const { owner: id, pins } = batch;
    const digest = digestOf(pins.map((pin) => [pin.kind, pin.name, pin.digest]));
    await this.#approvals.remember({ kind: this.#kind, id, digest, scope: user, approvedAt: new Date().toISOString(), detail: { pins } });
    // From now on the store has it, and whoever takes it back there means it.
    this.#unkept.delete(batch);
  }
}

export const nothingSeen: SeenOfServer = new Map();

/** Whether exactly this version was seen. */
export function isAmong(seen: SeenOfServer, subject: PinSubject): boolean {
  return seen.get(placeOf(subject))?.some(({ digest }) => digest === subject.digest) === true;
}

const user: ApprovalScope = Object.freeze({ kind: "user" });
const seenIn = new WeakMap<ApprovalStore, Map<string, SeenPins>>();

type NamedPin = SeenPin & Pick<PinSubject, "kind" | "name">;

interface Batch {
  readonly owner: string;
  readonly pins: readonly NamedPin[];
}

// Stores take details of up to a megabyte of indented text; without its content a pin holds, and only has no diff.
const maxContent = 100_000;
const maxBatch = 300_000;

function* inBatches(subjects: readonly PinSubject[]): Generator<readonly NamedPin[]> {
  let batch: NamedPin[] = [];
  let length = 0;
  for (const { kind: of, name, digest, content } of subjects) {
    const size = JSON.stringify(content).length;
    const isShort = size <= maxContent;
    if (length + (isShort ? size : 0) > maxBatch) {
      yield batch;
      [batch, length] = [[], 0];
    }
    batch.push({ kind: of, name, digest, content: isShort ? content : undefined });
    length += (isShort ? size : 0) + name.length + 200;
  }
  if (batch.length > 0) yield batch;
}

function byPlace(pins: readonly NamedPin[]): SeenOfServer {
  const seen = new Map<string, SeenPin[]>();
  for (const pin of pins) {
    const place = placeOf(pin);
    const versions = seen.get(place);
    if (versions === undefined) seen.set(place, [pin]);
    else versions.push(pin);
  }
  return seen;
}

function readPins(detail: unknown): readonly NamedPin[] {
  const pins = isRecord(detail) ? detail["pins"] : undefined;
  return Array.isArray(pins) ? pins.filter(isPin) : [];
}

function isPin(value: unknown): value is NamedPin {
  return isRecord(value) && ["kind", "name", "digest"].every((field) => typeof value[field] === "string");
}

/** Something that a model or a policy sees, and that may be another the next time: the whole definition of a tool, say. */
export interface PinSubject {
  /** What sort of thing it is: `mcp-tool`, `mcp-instructions`, `mcp-skill`, `skill-tool`. */
  readonly kind: string;
  /** Whose it is, told apart from whoever else has its name. */
  readonly owner: string;
  /** The owner's own name or address for it. */
  readonly name: string;
  /** `digestOf` the content. */
  readonly digest: string;
  readonly content: unknown;
}

/** What is told apart within an owner. */
export function placeOf({ kind, name }: Pick<PinSubject, "kind" | "name">): string {
  return `${kind} ${name}`;
}

/** The id of its approval. */
export function approvalId({ owner, name }: PinSubject): string {
  return `${owner}/${shortened(name)}`;
}

/** An owner by a name that people know, and by what makes it this one. */
export function ownerId(name: string, way: readonly unknown[]): string {
  return `${shortened(name)} ${sha256(JSON.stringify(way)).slice(0, 32)}`;
}

// A store takes ids of up to 4,096 characters; strangers choose names as they like.
function shortened(name: string): string {
  return name.length <= 200 ? name : `${name.slice(0, 160)}…${sha256(name).slice(0, 32)}`;
}

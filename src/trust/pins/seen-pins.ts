import { sha256 } from "../../base/canonical-json.ts";
import { Emitter } from "../../base/emitter.ts";
import { toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { ApprovalScope, ApprovalStore } from "../approvals.ts";
import { digestOf } from "../folder-digests.ts";

/** One version of a subject of an owner. */
export interface SeenPin {
  readonly digest: string;
  /** Undefined: it was too long to be stored. */
  readonly content: unknown;
}

/** By kind and name; several versions are ordered from oldest to newest. */
export type SeenOfServer = ReadonlyMap<string, readonly SeenPin[]>;

/**
 * The first seen definitions of servers and skills. They are stored in the approval store, under a separate kind because they
 * are not approved, and in one record per list: a server has hundreds of tools, and a store may need milliseconds per record.
 * Pins that are not stored yet, or could not be, are valid too.
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

  /** One instance per store and family, so that the next decision sees pins that are being written. */
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

  /** The current pins that are not in the store yet. */
  unkept(owner: string): SeenOfServer {
    return byPlace(this.#unkeptOf(owner));
  }

  /** Transfers the pins of an owner to another one. Returns false if there are none. */
  async move(from: string, to: string): Promise<boolean> {
    const records = await this.#approvals.list({ kind: this.#kind, id: from, scope: user });
    for (const record of records) {
      await this.#approvals.remember({ ...record, id: to });
      await this.#approvals.forget({ kind: this.#kind, id: from, digest: record.digest, scope: user });
    }
    return records.length > 0;
  }

  /** Stores them in the background. */
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

  notifyApproved(): void {
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
    // The store has them from now on, so a removal there is effective.
    this.#unkept.delete(batch);
  }
}

export const nothingSeen: SeenOfServer = new Map();

/** Whether exactly this version is pinned. */
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

// Stores accept details of up to a megabyte of indented text. A pin without its content is valid, but has no diff.
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

/** Content that a model or a policy sees and that may change, such as the complete definition of a tool. */
export interface PinSubject {
  /** The kind of content: `mcp-tool`, `mcp-instructions`, `mcp-skill`, `skill-tool`. */
  readonly kind: string;
  /** The owner, distinguished from others with the same name. */
  readonly owner: string;
  /** Its name or URI within the owner. */
  readonly name: string;
  /** `digestOf` the content. */
  readonly digest: string;
  readonly content: unknown;
}

/** The key of a subject within its owner. */
export function placeOf({ kind, name }: Pick<PinSubject, "kind" | "name">): string {
  return `${kind} ${name}`;
}

/** The id of its approval. */
export function approvalId({ owner, name }: PinSubject): string {
  return `${owner}/${shortened(name)}`;
}

/** An owner by its name and its identity. */
export function ownerId(name: string, way: readonly unknown[]): string {
  return `${shortened(name)} ${sha256(JSON.stringify(way)).slice(0, 32)}`;
}

// A store accepts ids of up to 4,096 characters, and servers choose names freely.
function shortened(name: string): string {
  return name.length <= 200 ? name : `${name.slice(0, 160)}…${sha256(name).slice(0, 32)}`;
}

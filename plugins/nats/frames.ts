import { randomUUID } from "node:crypto";
import type { Msg, MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import type { FleetConnection } from "./fleet-connection.ts";

/** Sends JSON that may be larger than one message. */
export class FrameWriter {
  readonly #connection: NatsConnection;
  readonly #partSize: number;
  readonly #createHeaders: () => MsgHdrs;

  constructor({ connection, createHeaders }: FleetConnection) {
    this.#connection = connection;
    this.#createHeaders = createHeaders;
    // The server counts headers, too.
    this.#partSize = Math.max(512, (connection.info?.max_payload ?? 1_048_576) - 1_024);
  }

  /** A message as `sendEncoded` takes it. Undefined: it is too large for one. */
  encode(message: object): Uint8Array | undefined {
    const bytes = Buffer.from(JSON.stringify(message));
    return bytes.length <= this.#partSize ? bytes : undefined;
  }

  sendEncoded(subject: string, bytes: Uint8Array, reply: string): void {
    if (!this.#connection.isClosed()) this.#connection.publish(subject, bytes, { reply });
  }

  send(subject: string, message: object, reply?: string): void {
    if (this.#connection.isClosed()) return;
    const bytes = Buffer.from(JSON.stringify(message));
    const options = reply === undefined ? undefined : { reply };
    if (bytes.length <= this.#partSize) this.#connection.publish(subject, bytes, options);
    else this.#sendParts(subject, bytes, options);
  }

  #sendParts(subject: string, bytes: Buffer, options: { readonly reply: string } | undefined): void {
    const id = randomUUID();
    const count = Math.ceil(bytes.length / this.#partSize);
    for (let part = 0; part < count; part++) {
      const headers = this.#createHeaders();
      headers.set(partHeader, `${id} ${part} ${count}`);
      this.#connection.publish(subject, bytes.subarray(part * this.#partSize, (part + 1) * this.#partSize), { ...options, headers });
    }
  }
}

const partHeader = "Skillhost-Part";

/** What one message adds: a whole, more to wait for, or a fault of the sender. */
export type Frame =
  | { readonly kind: "whole"; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: "part" }
  | { readonly kind: "faulty"; readonly message: string };

interface Assembly {
  readonly parts: Uint8Array[];
  readonly count: number;
  size: number;
}

const more: Frame = { kind: "part" };
/** Reads what senders send to one subject, each in its order. */
export class FrameReader {
  readonly #maxSize: number;
  readonly #maxOpen: number;
  /** Most messages are whole, and many readers live as long as one. */
  #assemblies: Map<string, Assembly> | undefined;

  /** `maxSize`: bytes of a whole. `maxOpen`: of senders that begin more and finish none, the oldest are dropped. */
  constructor(maxSize: number, maxOpen: number = 4) {
    this.#maxSize = maxSize;
    this.#maxOpen = maxOpen;
  }

  read(message: Pick<Msg, "data" | "headers">): Frame {
    const part = message.headers?.get(partHeader) ?? "";
    if (part === "") return readWhole(message.data, this.#maxSize);
    const [, id, index, count] = /^([\w-]{1,64}) (\d{1,6}) (\d{1,6})$/.exec(part) ?? [];
    if (id === undefined) return { kind: "faulty", message: "a part of a message has no valid place" };
    return this.#add(id, Number(index), Number(count), message.data);
  }

  #add(id: string, index: number, count: number, data: Uint8Array): Frame {
    this.#assemblies ??= new Map();
    const assemblies = this.#assemblies;
    const known = assemblies.get(id);
    const assembly = known ?? { parts: [], count, size: 0 };
    const isNext = index === assembly.parts.length && count === assembly.count && index < count;
    assembly.size += data.length;
    if (!isNext || assembly.size > this.#maxSize) {
      assemblies.delete(id);
      return { kind: "faulty", message: isNext ? tooLarge(this.#maxSize) : "a part of a message is missing" };
    }
    assembly.parts.push(data);
    if (assembly.parts.length === count) {
      assemblies.delete(id);
      return readWhole(Buffer.concat(assembly.parts, assembly.size), this.#maxSize);
    }
    if (known !== undefined) return more;
    if (assemblies.size >= this.#maxOpen) assemblies.delete(assemblies.keys().next().value as string);
    assemblies.set(id, assembly);
    return more;
  }
}

function readWhole({ buffer, byteOffset, length }: Uint8Array, maxSize: number): Frame {
  if (length > maxSize) return { kind: "faulty", message: tooLarge(maxSize) };
  try {
    const value: unknown = JSON.parse(Buffer.from(buffer, byteOffset, length).toString("utf8"));
    if (isObject(value)) return { kind: "whole", value };
  } catch {
    // Another program sent something else.
  }
  return { kind: "faulty", message: "a message is not a JSON object" };
}

function tooLarge(limit: number): string {
  return `a message is larger than ${limit} bytes`;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

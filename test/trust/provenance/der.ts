import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** Certificates of our own making, as bytes (X.690, RFC 5280): Node.js reads them, and does not make them. */
export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** SubjectPublicKeyInfo. */
  readonly spki: Buffer;
  readonly id: Buffer;
}

export function makeKeyPair(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const spki = publicKey.export({ type: "spki", format: "der" });
  return { privateKey, publicKey, spki, id: createHash("sha256").update(spki).digest() };
}

export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length: number[] = [];
  for (let rest = content.length; rest > 0; rest >>= 8) length.unshift(rest & 255);
  const head = content.length < 128 ? [content.length] : [0x80 | length.length, ...length];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
export const octets = (bytes: Uint8Array): Buffer => der(0x04, bytes);
export const text = (value: string): Buffer => der(0x0c, Buffer.from(value));

export function oid(id: string): Buffer {
  const [first = 0, second = 0, ...rest] = id.split(".").map(Number);
  const bytes = rest.flatMap((part) => {
    const groups = [part & 127];
    for (let left = Math.floor(part / 128); left > 0; left = Math.floor(left / 128)) groups.unshift((left & 127) | 128);
    return groups;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

export interface CertificateRequest {
  readonly subject: string;
  readonly key: KeyPair;
  readonly issuer: { readonly name: string; readonly key: KeyPair };
  readonly from: Date;
  readonly to: Date;
  readonly extensions: readonly Buffer[];
}

/** The part of a certificate that is signed. */
export function toBeSigned({ subject, key, issuer, from, to, extensions }: CertificateRequest): Buffer {
  const version = der(0xa0, der(0x02, Buffer.from([2])));
  const serial = der(0x02, Buffer.from([1]));
  const validity = sequence(time(from), time(to));
  return sequence(version, serial, ecdsa, name(issuer.name), validity, name(subject), key.spki, der(0xa3, sequence(...extensions)));
}

export function certificate(request: CertificateRequest): Buffer {
  const body = toBeSigned(request);
  return sequence(body, ecdsa, der(0x03, Buffer.from([0]), sign("sha256", body, request.issuer.key.privateKey)));
}

export function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), octets(value));
}

const ecdsa = sequence(oid("1.2.840.10045.4.3.2"));

function name(value: string): Buffer {
  return value === "" ? sequence() : sequence(der(0x31, sequence(oid("2.5.4.3"), text(value))));
}

function time(date: Date): Buffer {
  return der(0x18, Buffer.from(`${date.toISOString().replaceAll(/[-:T]|\.\d+/g, "")}`));
}

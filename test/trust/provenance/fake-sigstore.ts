import { createHash, sign } from "node:crypto";
import { canonicalJson } from "../../../src/base/canonical-json.ts";
import { certificate, der, extension, type KeyPair, makeKeyPair, octets, oid, sequence, text, toBeSigned } from "./der.ts";

/** An authority, a certificate log and a transparency log of our own: all that a bundle is held against. */
export interface FakeSigstore {
  /** For `trustRoot`. */
  readonly root: object;
  /** An attestation as npm's registry gives it. */
  attest(statement: object, build?: Partial<Build>): { readonly predicateType: string; readonly bundle: FakeBundle };
}

/** What of a bundle the tests alter. */
export interface FakeBundle {
  readonly dsseEnvelope: object;
  readonly verificationMaterial: { readonly tlogEntries: object[] };
}

export interface Build {
  readonly identity: string;
  readonly issuer: string;
  readonly commit: string;
  /** When the certificate was good; the log's time is now. */
  readonly from: Date;
  readonly to: Date;
  /** Leaves out that a certificate log has it. */
  readonly isUnlogged: boolean;
  /** Signs with another key than the certified one. */
  readonly isForged: boolean;
}

const minute = 60_000;
const fulcio = "1.3.6.1.4.1.57264.1";

export function createFakeSigstore(): FakeSigstore {
  const [authority, certificateLog, log] = [makeKeyPair(), makeKeyPair(), makeKeyPair()];
  const span = { from: new Date(Date.now() - 60 * minute), to: new Date(Date.now() + 60 * minute) };
  const issuer = { name: "Fake authority", key: authority };
  const mayCertify = [
    extension("2.5.29.19", sequence(der(0x01, Buffer.from([255])))),
    extension("2.5.29.15", der(0x03, Buffer.from([1, 0x06]))),
  ];
  const top = certificate({ subject: issuer.name, key: authority, issuer, ...span, extensions: mayCertify });
  const validFor = { start: span.from.toISOString() };
  const instance = (url: string, { spki, id }: KeyPair): object => ({
    baseUrl: url,
    hashAlgorithm: "SHA2_256",
    publicKey: { rawBytes: spki.toString("base64"), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor },
    logId: { keyId: id.toString("base64") },
  });
  return {
    root: {
      mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
      tlogs: [instance("https://log.example", log)],
      ctlogs: [instance("https://certificates.example", certificateLog)],
      certificateAuthorities: [
        { uri: "https://ca.example", certChain: { certificates: [{ rawBytes: top.toString("base64") }] }, validFor },
      ],
      timestampAuthorities: [],
    },
    attest(statement, build = {}) {
      const key = makeKeyPair();
      const leaf = certify(key, { ...githubBuild(), ...build }, issuer, certificateLog);
      const payload = Buffer.from(JSON.stringify(statement));
      const payloadType = "application/vnd.in-toto+json";
      const signer = build.isForged === true ? makeKeyPair() : key;
      const envelope = Buffer.concat([Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `), payload]);
      const signature = sign("sha256", envelope, signer.privateKey);
      const bundle = {
        mediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
        dsseEnvelope: { payload: payload.toString("base64"), payloadType, signatures: [{ sig: signature.toString("base64"), keyid: "" }] },
        verificationMaterial: {
          x509CertificateChain: { certificates: [{ rawBytes: leaf.toString("base64") }] },
          tlogEntries: [logEntry(payload, signature, leaf, log)],
          timestampVerificationData: { rfc3161Timestamps: [] },
        },
      };
      return { predicateType: (statement as { predicateType: string }).predicateType, bundle };
    },
  };
}

function githubBuild(): Build {
  return {
    identity: "https://github.com/acme/skills/.github/workflows/release.yml@refs/tags/v1.0.0",
    issuer: "https://token.actions.githubusercontent.com",
    commit: "0123456789abcdef0123456789abcdef01234567",
    from: new Date(Date.now() - minute),
    to: new Date(Date.now() + 10 * minute),
    isUnlogged: false,
    isForged: false,
  };
}

function certify(key: KeyPair, build: Build, issuer: { readonly name: string; readonly key: KeyPair }, log: KeyPair): Buffer {
  const { identity, from, to, isUnlogged } = build;
  const extensions = [
    extension("2.5.29.17", sequence(der(0x86, Buffer.from(identity)))),
    extension(`${fulcio}.8`, text(build.issuer)),
    extension(`${fulcio}.13`, text(build.commit)),
  ];
  const request = { subject: "", key, issuer, from, to, extensions };
  if (isUnlogged) return certificate(request);
  return certificate({ ...request, extensions: [...extensions, logged(toBeSigned(request), issuer.key, log)] });
}

/** RFC 6962: that a log has the certificate, which was signed for that without saying so. */
function logged(body: Buffer, authority: KeyPair, log: KeyPair): Buffer {
  const at = Buffer.alloc(8);
  at.writeBigUInt64BE(BigInt(Date.now()));
  const size = Buffer.from([body.length >> 16, (body.length >> 8) & 255, body.length & 255]);
  const signed = Buffer.concat([Buffer.from([0, 0]), at, Buffer.from([0, 1]), authority.id, size, body, Buffer.from([0, 0])]);
  const signature = sign("sha256", signed, log.privateKey);
  const short = (length: number): Buffer => Buffer.from([length >> 8, length & 255]);
  const entry = Buffer.concat([Buffer.from([0]), log.id, at, Buffer.from([0, 0, 4, 3]), short(signature.length), signature]);
  const list = Buffer.concat([short(entry.length), entry]);
  return sequence(oid("1.3.6.1.4.1.11129.2.4.2"), octets(octets(Buffer.concat([short(list.length), list]))));
}

function logEntry(payload: Buffer, signature: Buffer, leaf: Buffer, log: KeyPair): object {
  const body = Buffer.from(
    canonicalJson({
      apiVersion: "0.0.1",
      kind: "dsse",
      spec: {
        payloadHash: { algorithm: "sha256", value: createHash("sha256").update(payload).digest("hex") },
        signatures: [{ signature: signature.toString("base64"), verifier: leaf.toString("base64") }],
      },
    }),
  ).toString("base64");
  const integratedTime = Math.floor(Date.now() / 1000);
  const promised = canonicalJson({ body, integratedTime, logIndex: 7, logID: log.id.toString("hex") });
  return {
    logIndex: "7",
    logId: { keyId: log.id.toString("base64") },
    kindVersion: { kind: "dsse", version: "0.0.1" },
    integratedTime: String(integratedTime),
    inclusionPromise: { signedEntryTimestamp: sign("sha256", Buffer.from(promised), log.privateKey).toString("base64") },
    canonicalizedBody: body,
  };
}

import { createRequire } from "node:module";

/** Who signed a bundle, as Sigstore found it. */
export interface Signer {
  readonly identity?: {
    readonly subjectAlternativeName?: string;
    readonly extensions?: { readonly issuer?: string };
    readonly oids?: readonly { readonly oid?: { readonly id: readonly number[] } | undefined; readonly value: Uint8Array }[];
  };
}

export interface VerifyBundleOptions {
  /** Sigstore's TrustedRoot as JSON. Absent: the one that it gives by TUF. */
  readonly trustRoot?: unknown;
  readonly timeout?: number | undefined;
}

/**
 * Verifies a bundle: its certificate, that a certificate log and a transparency log have it, and its signature. Rejects
 * with Sigstore's own error when it is wrong, or when there is no way to find out.
 */
export async function verifyBundle(bundle: unknown, { trustRoot, timeout = 10_000 }: VerifyBundleOptions): Promise<Signer> {
  if (trustRoot !== undefined) return verifyOffline(bundle, trustRoot);
  const { verify } = await import("sigstore");
  return (await verify(bundle as Parameters<typeof verify>[0], { timeout })) as Signer;
}

/** The parts that sigstore is made of, of which these take a trust root of one's own. */
interface SigstoreParts {
  readonly "@sigstore/bundle": { bundleFromJSON(value: unknown): unknown };
  readonly "@sigstore/protobuf-specs": { readonly TrustedRoot: { fromJSON(value: unknown): unknown } };
  readonly "@sigstore/verify": {
    toSignedEntity(bundle: unknown): unknown;
    toTrustMaterial(root: unknown): unknown;
    readonly Verifier: new (material: unknown, options: object) => { verify(entity: unknown): unknown };
  };
}

function verifyOffline(bundle: unknown, trustRoot: unknown): Signer {
  // Those that sigstore itself uses, wherever they are installed.
  const require = createRequire(createRequire(import.meta.url).resolve("sigstore"));
  const part = <K extends keyof SigstoreParts>(name: K): SigstoreParts[K] => require(name) as SigstoreParts[K];
  const { Verifier, toSignedEntity, toTrustMaterial } = part("@sigstore/verify");
  const material = toTrustMaterial(part("@sigstore/protobuf-specs").TrustedRoot.fromJSON(trustRoot));
  const verifier = new Verifier(material, { ctlogThreshold: 1, tlogThreshold: 1, timestampThreshold: 1 });
  return verifier.verify(toSignedEntity(part("@sigstore/bundle").bundleFromJSON(bundle))) as Signer;
}

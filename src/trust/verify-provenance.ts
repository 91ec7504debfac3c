import { createRequire } from "node:module";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import type { ProvenanceRule } from "./trust-policy.ts";

/** The package to verify, as the registry describes it. */
interface ProvenanceSubject {
  readonly name: string;
  readonly version: string;
  /** The integrity of its tarball as npm writes it: `sha512-…`. */
  readonly integrity: string;
}

type ProvenanceVerdict =
  /** The verified build and commit. */
  | ({ readonly kind: "verified" } & BuildIdentity)
  /** The package has no provenance, and none is required. */
  | { readonly kind: "absent" }
  | { readonly kind: "refused"; readonly diagnostic: Diagnostic };

export interface ProvenanceOptions {
  /** The user's requirements for this package. Default: existing provenance must be valid. */
  readonly rule?: ProvenanceRule | undefined;
  /** The trust root of signatures, as JSON of Sigstore's TrustedRoot. Default: Sigstore's own, fetched by TUF. */
  readonly trustRoot?: unknown;
  /** The time limit for fetching it, in milliseconds. */
  readonly timeout?: number | undefined;
}

/**
 * Verifies where a package was built, by the attestations of its registry: the response of npm's `dist.attestations.url`, or
 * Sigstore bundles. This loads Sigstore, and uses the network unless a trust root is given. Never rejects: `PROVENANCE_…` codes
 * describe the failure.
 */
export async function verifyProvenance(
  attestations: unknown,
  subject: ProvenanceSubject,
  options: ProvenanceOptions = {},
): Promise<ProvenanceVerdict> {
  const { rule } = options;
  // Only build attestations; others, such as publish attestations, are ignored.
  const list =
    isRecord(attestations) && Array.isArray(attestations["attestations"])
      ? attestations["attestations"]
      : Array.isArray(attestations)
        ? attestations
        : [attestations];
  const bundles = list.flatMap((item: unknown) => {
    const bundle = isRecord(item) && isRecord(item["bundle"]) ? item["bundle"] : item;
    const type = statementOf(bundle)?.["predicateType"];
    return typeof type === "string" && predicate.test(type) ? [bundle] : [];
  });
  if (bundles.length === 0) {
    if (rule?.mode !== "require") return { kind: "absent" };
    return refuse(subject, "PROVENANCE_MISSING", "it has no provenance, which is required. Ask its authors to publish with --provenance");
  }
  let last: ProvenanceVerdict = { kind: "absent" };
  for (const bundle of bundles.slice(0, maxBundles)) {
    last = await judge(bundle, subject, options);
    if (last.kind === "verified") return last;
  }
  return last;
}

const maxBundles = 8;
const maxPayload = 4 * 1024 * 1024;
const predicate = /^https:\/\/slsa\.dev\/provenance\/v(0\.2|1)$/;

async function judge(
  bundle: unknown,
  subject: ProvenanceSubject,
  { rule, trustRoot, timeout }: ProvenanceOptions,
): Promise<ProvenanceVerdict> {
  let signer: Signer;
  try {
    signer = await verifyBundle(bundle, { trustRoot, timeout });
  } catch (error) {
    return refuse(subject, "PROVENANCE_UNVERIFIED", `its provenance cannot be verified: ${errorMessage(error)}`);
  }
  const statement = statementOf(bundle);
  if (statement === undefined) return refuse(subject, "PROVENANCE_INVALID", "its provenance is not an in-toto statement");
  if (!isAbout(statement, subject)) {
    const why = "its provenance is for another package, version or tarball";
    return refuse(subject, "PROVENANCE_MISMATCH", why);
  }
  const identity = identityOf(signer);
  if (identity === undefined)
    return refuse(subject, "PROVENANCE_IDENTITY", "its provenance was signed by a person, not by a GitHub or GitLab workflow");
  const broken = brokenRule(identity, rule);
  return broken === undefined ? { kind: "verified", ...identity } : refuse(subject, "PROVENANCE_RULE", broken);
}

function statementOf(bundle: unknown): Readonly<Record<string, unknown>> | undefined {
  const envelope = isRecord(bundle) ? bundle["dsseEnvelope"] : undefined;
  const payload = isRecord(envelope) ? envelope["payload"] : undefined;
  if (typeof payload !== "string" || payload.length > maxPayload) return undefined;
  try {
    const statement: unknown = JSON.parse(Buffer.from(payload, "base64").toString("utf8"));
    return isRecord(statement) ? statement : undefined;
  } catch {
    // Not JSON: it does not describe a package.
    return undefined;
  }
}

/** Compares name, version and the digest of the tarball, so that the built package is the downloaded one. */
function isAbout({ subject: subjects }: Readonly<Record<string, unknown>>, { name, version, integrity }: ProvenanceSubject): boolean {
  const sha512 = /(?:^|\s)sha512-([A-Za-z0-9+/]{86}==)(?:\s|$)/.exec(integrity)?.[1];
  if (sha512 === undefined || !Array.isArray(subjects)) return false;
  const hex = Buffer.from(sha512, "base64").toString("hex");
  const purl = `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;
  return subjects.some(
    (each: unknown) => isRecord(each) && each["name"] === purl && isRecord(each["digest"]) && each["digest"]["sha512"] === hex,
  );
}

function brokenRule({ repository, workflow }: BuildIdentity, rule: ProvenanceRule | undefined): string | undefined {
  if (rule?.repository !== undefined && plainAddress(rule.repository) !== plainAddress(repository))
    return `it was built from ${repository}, but ${rule.repository} is required`;
  if (rule?.workflow !== undefined && rule.workflow !== workflow) return `it was built by ${workflow}, but ${rule.workflow} is required`;
  return undefined;
}

/** `git+https://github.com/Acme/Skills.git/` is `https://github.com/acme/skills`: both hosts ignore case. */
function plainAddress(address: string): string {
  return address
    .replace(/^git\+/, "")
    .replace(/\/+$/, "")
    .replace(/\.git$/, "")
    .toLowerCase();
}

function refuse({ name, version }: ProvenanceSubject, code: string, why: string): ProvenanceVerdict {
  return { kind: "refused", diagnostic: { severity: "error", code, source: name, message: `${name}@${version}: ${why}.` } };
}

/** The build identity in the certificate of the signing key. */
interface BuildIdentity {
  /** `https://github.com/acme/skills` */
  readonly repository: string;
  /** The workflow file in it: `.github/workflows/release.yml`. */
  readonly workflow: string;
  /** The branch or tag, `refs/tags/v1.0.0`. */
  readonly ref: string;
  readonly commit?: string;
  /** The issuer of the identity token: `https://token.actions.githubusercontent.com`. */
  readonly issuer: string;
}

// The issuers that npm accepts; the certificates of both contain repository, workflow and ref.
const forms: ReadonlyMap<string, RegExp> = new Map([
  ["https://token.actions.githubusercontent.com", /^(https:\/\/github\.com\/[^/]+\/[^/]+)\/(\.github\/workflows\/[^@]+)@(refs\/.+)$/],
  ["https://gitlab.com", /^(https:\/\/gitlab\.com\/.+?)\/\/([^@]+)@(refs\/.+)$/],
]);

// "Source Repository Digest" in Fulcio's list of object identifiers.
const commitOid = "1.3.6.1.4.1.57264.1.13";

/** Undefined: it was signed by a person or by an unknown service. The content of the statement itself is not trusted. */
function identityOf({ identity }: Signer): BuildIdentity | undefined {
  const issuer = identity?.extensions?.issuer ?? "";
  const [, repository, workflow, ref] = forms.get(issuer)?.exec(identity?.subjectAlternativeName ?? "") ?? [];
  if (repository === undefined || workflow === undefined || ref === undefined) return undefined;
  const oids = identity?.oids ?? [];
  const found = oids.find(({ oid }) => oid?.id.join(".") === commitOid);
  const commit: string | undefined =
    found === undefined ? undefined : /[0-9a-f]{40}(?:[0-9a-f]{24})?$/.exec(Buffer.from(found.value).toString("latin1"))?.[0];
  return { repository, workflow, ref, issuer, ...(commit !== undefined && { commit }) };
}

/** The signer of a bundle, as verified by Sigstore. */
interface Signer {
  readonly identity?: {
    readonly subjectAlternativeName?: string;
    readonly extensions?: { readonly issuer?: string };
    readonly oids?: readonly { readonly oid?: { readonly id: readonly number[] } | undefined; readonly value: Uint8Array }[];
  };
}

interface VerifyBundleOptions {
  /** Sigstore's TrustedRoot as JSON. Absent: fetched by TUF. */
  readonly trustRoot?: unknown;
  readonly timeout?: number | undefined;
}

/**
 * Verifies a bundle: its certificate, its entries in a certificate log and a transparency log, and its signature. Rejects with
 * Sigstore's own error when it is invalid or cannot be verified.
 */
async function verifyBundle(bundle: unknown, { trustRoot, timeout = 10_000 }: VerifyBundleOptions): Promise<Signer> {
  if (trustRoot !== undefined) {
    // The versions that sigstore itself uses, resolved from its installation.
    const require = createRequire(createRequire(import.meta.url).resolve("sigstore"));
    const part = <K extends keyof SigstoreParts>(name: K): SigstoreParts[K] => require(name) as SigstoreParts[K];
    const { Verifier, toSignedEntity, toTrustMaterial } = part("@sigstore/verify");
    const material = toTrustMaterial(part("@sigstore/protobuf-specs").TrustedRoot.fromJSON(trustRoot));
    const verifier = new Verifier(material, { ctlogThreshold: 1, tlogThreshold: 1, timestampThreshold: 1 });
    return verifier.verify(toSignedEntity(part("@sigstore/bundle").bundleFromJSON(bundle))) as Signer;
  }
  const { verify } = await import("sigstore");
  return (await verify(bundle as Parameters<typeof verify>[0], { timeout })) as Signer;
}

/** The packages of sigstore that accept a custom trust root. */
interface SigstoreParts {
  readonly "@sigstore/bundle": { bundleFromJSON(value: unknown): unknown };
  readonly "@sigstore/protobuf-specs": { readonly TrustedRoot: { fromJSON(value: unknown): unknown } };
  readonly "@sigstore/verify": {
    toSignedEntity(bundle: unknown): unknown;
    toTrustMaterial(root: unknown): unknown;
    readonly Verifier: new (material: unknown, options: object) => { verify(entity: unknown): unknown };
  };
}

import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type ProvenanceOptions, verifyProvenance } from "../../../src/trust/verify-provenance.ts";
import { createFakeSigstore, type FakeBundle } from "./fake-sigstore.ts";

const sigstore = createFakeSigstore();
const tarball = createHash("sha512").update("the tarball").digest();
const subject = { name: "@acme/skills", version: "1.0.0", integrity: `sha512-${tarball.toString("base64")}` };
const trustRoot = sigstore.root;

function statement(changes: object = {}): object {
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name: "pkg:npm/%40acme/skills@1.0.0", digest: { sha512: tarball.toString("hex") } }],
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: { buildDefinition: { externalParameters: { workflow: { repository: "https://github.com/another/project" } } } },
    ...changes,
  };
}

const published = { predicateType: "https://github.com/npm/attestation/tree/main/specs/publish/v0.1", bundle: {} };
const verify = (attestation: unknown, options: ProvenanceOptions = {}) =>
  verifyProvenance({ attestations: [published, attestation] }, subject, { trustRoot, ...options });

async function codeOf(attestation: unknown, options?: ProvenanceOptions): Promise<string> {
  const verdict = await verify(attestation, options);
  return verdict.kind === "refused" ? verdict.diagnostic.code : verdict.kind;
}

const where = {
  repository: "https://github.com/acme/skills",
  workflow: ".github/workflows/release.yml",
  ref: "refs/tags/v1.0.0",
  commit: "0123456789abcdef0123456789abcdef01234567",
  issuer: "https://token.actions.githubusercontent.com",
};

test("provenance takes the build's origin from the certificate and not from the package's claims", async () => {
  expect(await verify(sigstore.attest(statement()))).toEqual({ kind: "verified", ...where });
  const { bundle } = sigstore.attest(statement({ predicateType: "https://slsa.dev/provenance/v0.2" }));
  expect(await verifyProvenance(bundle, subject, { trustRoot })).toMatchObject({ kind: "verified" });
});

test("a build of GitLab has a repository, a file and a ref as well", async () => {
  const identity = "https://gitlab.com/acme/tools/skills//.gitlab-ci.yml@refs/heads/main";
  expect(await verify(sigstore.attest(statement(), { identity, issuer: "https://gitlab.com" }))).toMatchObject({
    repository: "https://gitlab.com/acme/tools/skills",
    workflow: ".gitlab-ci.yml",
    ref: "refs/heads/main",
  });
});

describe("provenance is refused that", () => {
  const other = createFakeSigstore();
  const subjectOf = (changes: object): object =>
    statement({ subject: [{ name: "pkg:npm/%40acme/skills@1.0.0", digest: { sha512: tarball.toString("hex") }, ...changes }] });
  const edited = (edit: (bundle: FakeBundle) => void): object => {
    const attestation = structuredClone(sigstore.attest(statement()));
    edit(attestation.bundle);
    return attestation;
  };
  const cases: readonly [string, () => object, string, string?][] = [
    ["another authority certified", () => other.attest(statement()), "PROVENANCE_UNVERIFIED", "certificate chain"],
    [
      "was signed by another key than the certified one",
      () => sigstore.attest(statement(), { isForged: true }),
      "PROVENANCE_UNVERIFIED",
      "signature verification failed",
    ],
    ["no certificate log has", () => sigstore.attest(statement(), { isUnlogged: true }), "PROVENANCE_UNVERIFIED", "expected 1 SCTs"],
    [
      "no transparency log has",
      () => edited((bundle) => void bundle.verificationMaterial.tlogEntries.pop()),
      "PROVENANCE_UNVERIFIED",
      "expected 1 timestamps",
    ],
    [
      "a transparency log has otherwise",
      () => edited((bundle) => Object.assign(bundle.verificationMaterial.tlogEntries[0]!, { logIndex: "8" })),
      "PROVENANCE_UNVERIFIED",
      "inclusion promise",
    ],
    [
      "was altered",
      () =>
        edited((bundle) =>
          Object.assign(bundle.dsseEnvelope, { payload: Buffer.from(JSON.stringify(statement({ more: 1 }))).toString("base64") }),
        ),
      "PROVENANCE_UNVERIFIED",
      "DSSE payload hash mismatch",
    ],
    [
      "is certified for another time",
      () => sigstore.attest(statement(), { from: new Date(Date.now() - 120_000), to: new Date(Date.now() - 60_000) }),
      "PROVENANCE_UNVERIFIED",
      "certificate chain",
    ],
    ["is for another package", () => sigstore.attest(subjectOf({ name: "pkg:npm/%40acme/skill@1.0.0" })), "PROVENANCE_MISMATCH"],
    ["is for another version", () => sigstore.attest(subjectOf({ name: "pkg:npm/%40acme/skills@1.0.1" })), "PROVENANCE_MISMATCH"],
    ["is for another tarball", () => sigstore.attest(subjectOf({ digest: { sha512: "00" } })), "PROVENANCE_MISMATCH"],
    ["is about nothing", () => sigstore.attest(statement({ subject: "all" })), "PROVENANCE_MISMATCH"],
    [
      "a person signed",
      () => sigstore.attest(statement(), { identity: "mallory@example.com", issuer: "https://accounts.example" }),
      "PROVENANCE_IDENTITY",
    ],
    [
      "a service signed that claims to be a workflow",
      () => sigstore.attest(statement(), { issuer: "https://accounts.example" }),
      "PROVENANCE_IDENTITY",
    ],
    [
      "is by a workflow whose address only begins alike",
      () =>
        sigstore.attest(statement(), { identity: "https://github.com.evil.example/acme/skills/.github/workflows/a.yml@refs/heads/main" }),
      "PROVENANCE_IDENTITY",
    ],
    [
      "is not a bundle",
      () =>
        edited((bundle) => {
          Object.assign(bundle, { verificationMaterial: undefined });
        }),
      "PROVENANCE_UNVERIFIED",
    ],
  ];
  test.each(cases)("%s", async (_, make, code, reason = "") => {
    const verdict = await verify(make());
    expect(verdict).toMatchObject({ kind: "refused", diagnostic: { code, message: expect.stringContaining(reason) } });
  });
});

test("a rule can ask for provenance, for a repository and for a workflow", async () => {
  const none = { attestations: [published] };
  expect(await verifyProvenance(none, subject, { trustRoot })).toEqual({ kind: "absent" });
  expect(await verifyProvenance(none, subject, { trustRoot, rule: { mode: "warn" } })).toEqual({ kind: "absent" });
  expect(await verifyProvenance(undefined, subject, { trustRoot, rule: { mode: "require" } })).toMatchObject({
    diagnostic: { code: "PROVENANCE_MISSING" },
  });
  const attestation = sigstore.attest(statement());
  const rule = (more: object): ProvenanceOptions => ({ rule: { mode: "require", ...more } });
  expect(await codeOf(attestation, rule({ repository: "git+https://github.com/Acme/Skills.git", workflow: where.workflow }))).toBe(
    "verified",
  );
  expect(await codeOf(attestation, rule({ repository: "https://github.com/acme/other" }))).toBe("PROVENANCE_RULE");
  expect(await codeOf(attestation, rule({ workflow: ".github/workflows/test.yml" }))).toBe("PROVENANCE_RULE");
});

test("an invalid attestation is ignored", async () => {
  for (const value of [
    null,
    7,
    "x",
    [],
    {},
    { attestations: "x" },
    { attestations: [null, { bundle: 1 }, { bundle: { dsseEnvelope: { payload: 7 } } }] },
  ])
    expect(await verifyProvenance(value, subject, { trustRoot })).toEqual({ kind: "absent" });
});

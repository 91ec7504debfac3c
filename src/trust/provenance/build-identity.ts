import type { Signer } from "./sigstore-verifier.ts";

/** Where something was built, as the authority that certified the build's key has it. */
export interface BuildIdentity {
  /** `https://github.com/acme/skills` */
  readonly repository: string;
  /** The file in it that says how: `.github/workflows/release.yml`. */
  readonly workflow: string;
  /** The branch or tag: `refs/tags/v1.0.0`. */
  readonly ref: string;
  readonly commit?: string;
  /** Who vouches for all that: `https://token.actions.githubusercontent.com`. */
  readonly issuer: string;
}

// The issuers that npm takes provenance of; of both, the name in the certificate is repository, workflow and ref.
const forms: ReadonlyMap<string, RegExp> = new Map([
  ["https://token.actions.githubusercontent.com", /^(https:\/\/github\.com\/[^/]+\/[^/]+)\/(\.github\/workflows\/[^@]+)@(refs\/.+)$/],
  ["https://gitlab.com", /^(https:\/\/gitlab\.com\/.+?)\/\/([^@]+)@(refs\/.+)$/],
]);

// "Source Repository Digest" in Fulcio's list of object identifiers.
const commitOid = "1.3.6.1.4.1.57264.1.13";

/** Undefined: it was signed by a person, or by a service that is not known here. What the statement itself says counts for nothing. */
export function identityOf({ identity }: Signer): BuildIdentity | undefined {
  const issuer = identity?.extensions?.issuer ?? "";
  const [, repository, workflow, ref] = forms.get(issuer)?.exec(identity?.subjectAlternativeName ?? "") ?? [];
  if (repository === undefined || workflow === undefined || ref === undefined) return undefined;
  const commit = commitOf(identity?.oids ?? []);
  return { repository, workflow, ref, issuer, ...(commit !== undefined && { commit }) };
}

function commitOf(oids: NonNullable<NonNullable<Signer["identity"]>["oids"]>): string | undefined {
  const found = oids.find(({ oid }) => oid?.id.join(".") === commitOid);
  return found === undefined ? undefined : /[0-9a-f]{40}(?:[0-9a-f]{24})?$/.exec(Buffer.from(found.value).toString("latin1"))?.[0];
}

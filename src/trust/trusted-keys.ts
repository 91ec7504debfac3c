import { HostError } from "../base/errors.ts";
import { type PublicKey, parseKey } from "./key-text.ts";

/** Which keys are believed here. */
export interface TrustedKeys {
  readonly all: readonly PublicKey[];
  /** A key that is trusted, by its id. */
  find(id: string): PublicKey | undefined;
  /** Why and when a key was revoked; undefined: it was not. */
  revoked(id: string): string | undefined;
  /** Whether a project, if it names keys at all, names this one. */
  isExpected(id: string): boolean;
  /** A key that the project names. */
  expected(id: string): PublicKey | undefined;
}

export interface Revocation {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly reason?: string | undefined;
}

export interface TrustedKeysParts {
  readonly keys: readonly PublicKey[];
  readonly revoked: readonly Revocation[];
  /** The only keys that the skills of a project may be signed with; undefined: any that is trusted. */
  readonly onlyKeys?: readonly PublicKey[] | undefined;
}

export function createTrustedKeys({ keys, revoked, onlyKeys }: TrustedKeysParts): TrustedKeys {
  const byId = new Map(keys.map((key) => [key.id, key]));
  const revocations = new Map(revoked.map((each) => [each.id, each]));
  const expected = onlyKeys === undefined ? undefined : new Map(onlyKeys.map((key) => [key.id, key]));
  return {
    all: [...byId.values()].filter(({ id }) => !revocations.has(id)),
    find: (id) => byId.get(id),
    revoked(id) {
      const found = revocations.get(id);
      return found && `on ${found.at.slice(0, 10)}${found.reason === undefined ? "" : ` (${found.reason})`}`;
    },
    isExpected: (id) => expected?.has(id) ?? true,
    expected: (id) => expected?.get(id),
  };
}

/** Keys given as texts in options. @throws HostError `KEY_INVALID` naming the place. */
export function parseKeyList(texts: readonly string[], place: string): readonly PublicKey[] {
  return texts.map((text, index) => {
    try {
      return parseKey(text);
    } catch (error) {
      throw error instanceof HostError ? new HostError(error.code, `${place}[${index}]: ${error.message}`) : error;
    }
  });
}

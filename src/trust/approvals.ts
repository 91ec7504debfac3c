import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { isDigest } from "./folder-digests.ts";

/** What somebody approved: exactly this content of exactly this subject. Anything else has another digest and was not. */
export interface ApprovalKey {
  /** What sort of thing it is: a tool's permission, the definition of a server's tool, a package. */
  readonly kind: string;
  /** Which one: a tool's name, `server/tool`, a package's name. */
  readonly id: string;
  /** `digestOf` what was shown to whoever approved. */
  readonly digest: string;
}

/** Where an approval holds. */
export type ApprovalScope =
  | { readonly kind: "session"; readonly id: string }
  /** `id` is what `locationOf` gives for a folder. */
  | { readonly kind: "location"; readonly id: string }
  /** Everywhere, for this user. */
  | { readonly kind: "user" };

export interface Approval extends ApprovalKey {
  readonly scope: ApprovalScope;
  /** When it was given, ISO 8601. */
  readonly approvedAt: string;
  /** What was approved, in a form that people can review and later versions can be compared with. Plain JSON. */
  readonly detail?: unknown;
}

/** Picks approvals: each field that is given must be equal. */
export interface ApprovalQuery {
  readonly kind?: string;
  readonly id?: string;
  readonly digest?: string;
  readonly scope?: ApprovalScope;
}

/**
 * Remembers what somebody approved. It promises nothing about where: in memory, in a folder, on another machine. What
 * one program remembers or forgets, others that share the store may see at once or a little later.
 */
export interface ApprovalStore {
  /** Whether this was approved in one of these scopes. A promise only where the answer is not at hand. */
  has(key: ApprovalKey, scopes: readonly ApprovalScope[]): boolean | Promise<boolean>;
  /**
   * Remembers an approval; the same one again replaces its detail. Settles when it is kept.
   * @throws HostError `APPROVAL_INVALID` when it is none. Rejects with the system's error when it cannot be kept.
   */
  remember(approval: Approval): Promise<void>;
  /** Takes approvals back and says how many there were. */
  forget(query: ApprovalQuery): Promise<number>;
  /** The approvals that match, the oldest first. */
  list(query?: ApprovalQuery): Promise<readonly Approval[]>;
}

/** Approvals that end with the program. */
export function createMemoryApprovals(): ApprovalStore {
  const kept = new Map<string, Approval>();
  return {
    has: (key, scopes) => scopes.some((scope) => kept.has(approvalText(key, scope))),
    async remember(approval) {
      const read = checkApproval(approval);
      kept.set(approvalText(read, read.scope), read);
    },
    async forget(query) {
      const found = [...kept].filter(([, approval]) => isMatch(approval, query));
      for (const [text] of found) kept.delete(text);
      return found.length;
    },
    list: async (query = {}) => oldestFirst([...kept.values()].filter((approval) => isMatch(approval, query))),
  };
}

/** One text for one approval: two that differ anywhere but in detail and time have different ones. */
export function approvalText({ kind, id, digest }: ApprovalKey, scope: ApprovalScope): string {
  // JSON strings, so that no part can be written so as to read like the next one.
  return JSON.stringify([scope.kind, scope.kind === "user" ? "" : scope.id, kind, id, digest]);
}

export function isMatch(approval: Approval, query: ApprovalQuery): boolean {
  const { scope } = query;
  const isEqual = (["kind", "id", "digest"] as const).every((field) => query[field] === undefined || query[field] === approval[field]);
  return isEqual && (scope === undefined || (scope.kind === approval.scope.kind && idOf(scope) === idOf(approval.scope)));
}

export function oldestFirst(approvals: readonly Approval[]): readonly Approval[] {
  return approvals.toSorted((a, b) => (a.approvedAt < b.approvedAt ? -1 : Number(a.approvedAt > b.approvedAt)));
}

/** @throws HostError `APPROVAL_INVALID` */
export function checkApproval(value: unknown): Approval {
  const approval = readApproval(value);
  if (approval !== undefined) return approval;
  const needs = "kind, id, a digest of digestOf, a scope and the time approvedAt";
  throw new HostError("APPROVAL_INVALID", `This is not an approval: it needs ${needs}.`);
}

/** A frozen copy of what is an approval; undefined when it is none. */
export function readApproval(value: unknown): Approval | undefined {
  if (!isRecord(value)) return undefined;
  const { kind, id, digest, approvedAt, detail } = value;
  const scope = readScope(value["scope"]);
  if (!isText(kind) || !isText(id) || !isDigest(digest) || !isTime(approvedAt) || scope === undefined) return undefined;
  return Object.freeze({ kind, id, digest, scope, approvedAt, ...(detail === undefined ? {} : { detail }) });
}

function readScope(value: unknown): ApprovalScope | undefined {
  if (!isRecord(value)) return undefined;
  const { kind, id } = value;
  if (kind === "user") return Object.freeze({ kind });
  return (kind === "session" || kind === "location") && isText(id) ? Object.freeze({ kind, id }) : undefined;
}

function idOf(scope: ApprovalScope): string {
  return scope.kind === "user" ? "" : scope.id;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= 4096;
}

function isTime(value: unknown): value is string {
  return typeof value === "string" && value.length <= 40 && !Number.isNaN(Date.parse(value));
}

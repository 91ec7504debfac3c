import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { isDigest } from "./folder-digests.ts";

/** An approval of exactly this content of exactly this subject. Any other content has another digest and is not approved. */
export interface ApprovalKey {
  /** The kind of subject: a tool's permission, the definition of a server's tool, a package. */
  readonly kind: string;
  /** The subject within its kind: a tool's name, `server/tool`, a package's name. */
  readonly id: string;
  /** `digestOf` the content that was shown to the user. */
  readonly digest: string;
}

/** The scope of an approval. */
export type ApprovalScope =
  | { readonly kind: "session"; readonly id: string }
  /** `id` is the `locationOf` a folder. */
  | { readonly kind: "location"; readonly id: string }
  /** Everywhere, for this user. */
  | { readonly kind: "user" };

export interface Approval extends ApprovalKey {
  readonly scope: ApprovalScope;
  /** The time of the approval, ISO 8601. */
  readonly approvedAt: string;
  /** The approved content, for reviews and for comparisons with later versions. Plain JSON. */
  readonly detail?: unknown;
}

/** Selects approvals: each given field must be equal. */
export interface ApprovalQuery {
  readonly kind?: string;
  readonly id?: string;
  readonly digest?: string;
  readonly scope?: ApprovalScope;
}

/**
 * Stores approvals, in memory, in a folder or on another machine. Programs that share a store may see changes of each other
 * with a delay.
 */
export interface ApprovalStore {
  /** Whether this was approved in one of these scopes. Returns a promise only if the answer is not available synchronously. */
  has(key: ApprovalKey, scopes: readonly ApprovalScope[]): boolean | Promise<boolean>;
  /**
   * Stores an approval; an equal one replaces its detail. Settles when it is stored.
   * @throws HostError `APPROVAL_INVALID` for an invalid approval. Rejects with the system's error when it cannot be stored.
   */
  remember(approval: Approval): Promise<void>;
  /** Revokes approvals and returns their number. */
  forget(query: ApprovalQuery): Promise<number>;
  /** The matching approvals, oldest first. */
  list(query?: ApprovalQuery): Promise<readonly Approval[]>;
}

/** Approvals in memory, until the process ends. */
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

/** The key of an approval: approvals that differ in any field but detail and time have different keys. */
export function approvalText({ kind, id, digest }: ApprovalKey, scope: ApprovalScope): string {
  // JSON strings, so that no part can imitate the following one.
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

/** A frozen copy of an approval; undefined for any other value. */
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

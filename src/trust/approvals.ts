import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../base/canonical-json.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { WorkSlices } from "../base/wait.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { entryStamp } from "../io/file-stamp.ts";
import { readTextFile } from "../io/read-bounded.ts";
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
interface ApprovalQuery {
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
    has: (key, scopes) => kept.size > 0 && scopes.some((scope) => kept.has(approvalText(key, scope))),
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
function approvalText({ kind, id, digest }: ApprovalKey, scope: ApprovalScope): string {
  // JSON strings, so that no part can imitate the following one.
  return JSON.stringify([scope.kind, scope.kind === "user" ? "" : scope.id, kind, id, digest]);
}

function isMatch(approval: Approval, query: ApprovalQuery): boolean {
  const { scope } = query;
  const isEqual = (["kind", "id", "digest"] as const).every((field) => query[field] === undefined || query[field] === approval[field]);
  return isEqual && (scope === undefined || (scope.kind === approval.scope.kind && idOf(scope) === idOf(approval.scope)));
}

export function oldestFirst(approvals: readonly Approval[]): readonly Approval[] {
  return approvals.toSorted((a, b) => (a.approvedAt < b.approvedAt ? -1 : Number(a.approvedAt > b.approvedAt)));
}

/** @throws HostError `APPROVAL_INVALID` */
function checkApproval(value: unknown): Approval {
  const approval = readApproval(value);
  if (approval !== undefined) return approval;
  const needs = "kind, id, a digest of digestOf, a scope and the time approvedAt";
  throw new HostError("APPROVAL_INVALID", `This is not an approval: it needs ${needs}.`);
}

/** A frozen copy of an approval; undefined for any other value. */
function readApproval(value: unknown): Approval | undefined {
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

interface FileApprovalsOptions {
  /**
   * The folder of the approvals; it need not exist. It must belong to the user, because write access to it means approval:
   * never use a folder of a checkout or a package.
   */
  readonly directory: string;
  /** Receives a diagnostic for each unreadable approval file, once per state of the file. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/**
 * Persistent approvals, one JSON file each. Programs that share the folder cannot overwrite approvals of each other, because
 * each writes only its own; changes of another program are visible within a quarter of a second. A damaged file
 * (`APPROVAL_UNREADABLE`) approves nothing and is never deleted.
 */
export function createFileApprovals(options: FileApprovalsOptions): ApprovalStore {
  return new FolderApprovals(options);
}

const maxBytes = 1024 * 1024;

/** The number of files to read before the event loop runs again: each may have a megabyte. */
const readsAtOnce = 20;

/**
 * How long an answer of `has` is cached before its file is checked again, in milliseconds, because consecutive calls ask for
 * the same one.
 */
const holdsFor = 250;

interface Answer {
  readonly has: boolean;
  readonly until: number;
}

interface Read {
  /** Changes when the file may have changed. */
  readonly state: string;
  readonly approval: Approval | undefined;
}

class FolderApprovals implements ApprovalStore {
  readonly #directory: string;
  readonly #report: (diagnostic: Diagnostic) => void;
  /** Parsed files; an unchanged file is not read again. */
  readonly #read = new Map<string, Read>();
  /** Recent answers of `has`, by approval and scope. Frequent callers pass the same object. */
  #answers = new WeakMap<ApprovalKey, Map<string, Answer>>();

  constructor({ directory, onDiagnostic = () => {} }: FileApprovalsOptions) {
    this.#directory = directory;
    this.#report = onDiagnostic;
  }

  has(key: ApprovalKey, scopes: readonly ApprovalScope[]): boolean {
    const answers = this.#answers.get(key) ?? new Map<string, Answer>();
    this.#answers.set(key, answers);
    return scopes.some((scope) => {
      const place = scope.kind === "user" ? scope.kind : `${scope.kind} ${scope.id}`;
      const now = performance.now();
      const known = answers.get(place);
      if (known !== undefined && known.until > now) return known.has;
      const has = this.#approvalIn(fileNameOf(key, scope)) !== undefined;
      answers.set(place, { has, until: now + holdsFor });
      return has;
    });
  }

  async remember(value: Approval): Promise<void> {
    const approval = checkApproval(value);
    const name = fileNameOf(approval, approval.scope);
    const text = `${JSON.stringify(approval, undefined, 2)}\n`;
    if (Buffer.byteLength(text) > maxBytes) {
      throw new HostError(
        "APPROVAL_INVALID",
        `The approval of ${approval.kind} "${approval.id}" is larger than ${maxBytes} bytes. Shorten detail.`,
      );
    }
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await this.#setAsideDamaged(name);
    await writeFileAtomic(join(this.#directory, name), text, { mode: 0o600 });
    this.#answers = new WeakMap();
  }

  async forget(query: Parameters<ApprovalStore["forget"]>[0]): Promise<number> {
    const found = (await this.#all()).filter(({ approval }) => isMatch(approval, query));
    for (const { name } of found) await rm(join(this.#directory, name), { force: true });
    this.#answers = new WeakMap();
    return found.length;
  }

  async list(query: Parameters<ApprovalStore["list"]>[0] = {}): Promise<readonly Approval[]> {
    return oldestFirst((await this.#all()).map(({ approval }) => approval).filter((approval) => isMatch(approval, query)));
  }

  async #all(): Promise<{ name: string; approval: Approval }[]> {
    const names = (await namesIn(this.#directory)).filter((name) => /^[0-9a-f]{64}\.json$/.test(name));
    const slices = new WorkSlices(readsAtOnce);
    const found: { name: string; approval: Approval }[] = [];
    for (const name of names) {
      const approval = this.#approvalIn(name);
      if (approval !== undefined) found.push({ name, approval });
      await slices.spend(1);
    }
    return found;
  }

  #approvalIn(name: string): Approval | undefined {
    const file = join(this.#directory, name);
    const state = entryStamp(file);
    if (state === undefined) {
      this.#read.delete(name);
      return undefined;
    }
    const before = this.#read.get(name);
    if (before?.state === state) return before.approval;
    const approval = this.#load(file, name);
    this.#read.set(name, { state, approval });
    return approval;
  }

  #load(file: string, name: string): Approval | undefined {
    const read = readTextFile(file, maxBytes);
    const approval = read.ok ? parse(read.text) : undefined;
    // The file name is a digest of the approval, so a file with another name approves nothing.
    if (approval !== undefined && fileNameOf(approval, approval.scope) === name) return approval;
    // It was revoked between listing and reading.
    if (!read.ok && read.diagnostic.code === "FILE_MISSING") return undefined;
    const why = read.ok ? "" : ` ${read.diagnostic.message}`;
    const message = `This file is damaged, so its approvals are requested again.${why} Delete it after you have reviewed it.`;
    this.#report({ severity: "warning", code: "APPROVAL_UNREADABLE", message, file });
    return undefined;
  }

  /** A new approval with the name of a damaged file renames the damaged one. */
  async #setAsideDamaged(name: string): Promise<void> {
    const file = join(this.#directory, name);
    if (entryStamp(file) === undefined || this.#approvalIn(name) !== undefined) return;
    await rename(file, `${file}.damaged-${Date.now()}`).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  }
}

function fileNameOf(key: ApprovalKey, scope: ApprovalScope): string {
  return `${sha256(approvalText(key, scope))}.json`;
}

function parse(text: string): Approval | undefined {
  try {
    return readApproval(JSON.parse(text));
  } catch {
    // Not JSON: reported as damaged.
    return undefined;
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

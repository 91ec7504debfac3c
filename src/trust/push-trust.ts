import { hash, verify } from "node:crypto";
import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { toError } from "../base/errors.ts";
import type { Approval, ApprovalScope, ApprovalStore } from "./approvals.ts";
import { diffToApprove } from "./pins/definition-diff.ts";
import { named, type VerifiedSignatures } from "./skill-signature.ts";
import { readToolEnvelope, type ToolEnvelope, toolEnvelopeBytes } from "./tool-envelope.ts";
import type { TrustMode } from "./trust-policy.ts";
import { type TrustedKeys, toKeyObject } from "./trusted-keys.ts";

/** A tool that a program or a client adds to a session. */
interface PushedDefinition {
  readonly name: string;
  /** The signature of its definition, 64 hex digits. */
  readonly contract: string;
  readonly definition: { readonly metadata?: unknown };
}

/** A pushed tool that awaits approval. */
export interface HeldPush {
  readonly name: string;
  readonly reason: "changed" | "new";
  readonly digest: string;
  readonly diff: readonly string[];
  readonly definition: unknown;
}

interface PushTrustOptions {
  readonly mode: TrustMode;
  readonly keys: TrustedKeys;
  readonly verified: VerifiedSignatures;
  readonly approvals: ApprovalStore;
  /** Called when a record could not be stored. */
  readonly onError: (error: Error) => void;
}

/** Decides which pushed tools may be offered: those signed by a trusted key, and those whose definition was approved. */
export class PushTrust {
  readonly mode: TrustMode;
  readonly #options: PushTrustOptions;
  readonly #events: Emitter<{ approved: undefined }>;
  /** Records for approval by other programs, and answers of a slow store. */
  readonly #recorded = new Set<string>();
  readonly #approved = new Set<string>();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: PushTrustOptions) {
    this.mode = options.mode;
    this.#options = options;
    this.#events = new Emitter(options.onError);
  }

  /** The reason that a tool must not be offered, or with `warn` the problem of its signature. Undefined: none. */
  judge({ name, contract, definition }: PushedDefinition, pusher: string): Diagnostic | undefined {
    if (this.mode === "off") return undefined;
    const envelope = readToolEnvelope(definition.metadata);
    const fault = envelope === undefined ? undefined : this.#faultOf(name, contract, envelope);
    if (envelope !== undefined && fault === undefined) return undefined;
    const isRequired = this.mode === "require";
    if (isRequired && this.#isApproved(name, contract)) return undefined;
    const how = `Have it signed, or review it and approve it with "skillhost approve external ${name}".`;
    const about = { severity: isRequired ? "error" : "warning", source: pusher } as const;
    const result = isRequired ? " It is not available." : "";
    if (fault !== undefined)
      return { ...about, code: fault.code, message: `Tool "${name}", registered by ${pusher}: ${fault.message}${result} ${how}` };
    if (!isRequired) return undefined;
    this.#record(name, contract, definition);
    return {
      ...about,
      code: "TRUST_TOOL_UNSIGNED",
      message: `Tool "${name}", registered by ${pusher}, is neither signed nor approved.${result} ${how}`,
    };
  }

  /** Notifies of approvals in this process. */
  subscribe(listener: () => void): Disposable {
    return this.#events.on("approved", listener);
  }

  /** The tools pushed by any program that await approval. */
  async held(): Promise<readonly HeldPush[]> {
    await this.#writing;
    const [waiting, approved] = await Promise.all([this.#list(heldKind), this.#list(approvedKind)]);
    const newest = new Map(waiting.map((each) => [each.id, each]));
    return [...newest.values()].flatMap(({ id, digest, detail }): HeldPush[] => {
      if (approved.some((each) => each.id === id && each.digest === digest)) return [];
      const before = approved.findLast((each) => each.id === id);
      const diff = diffToApprove(before?.detail, detail);
      return [{ name: id, reason: before === undefined ? "new" : "changed", digest, diff, definition: detail }];
    });
  }

  /** Approves all awaiting tools or one of them. Returns their number. */
  async approve(name: string | undefined): Promise<number> {
    const wanted = (await this.held()).filter((each) => name === undefined || each.name === name);
    for (const { name: id, digest, definition } of wanted) {
      await this.#options.approvals.remember({
        kind: approvedKind,
        id,
        digest,
        scope: user,
        approvedAt: new Date().toISOString(),
        detail: definition,
      });
      await this.#options.approvals.forget({ kind: heldKind, id });
      this.#approved.add(placeOf(id, digest));
    }
    this.#recorded.clear();
    if (wanted.length > 0) this.#events.emit("approved", undefined);
    return wanted.length;
  }

  /** Settles when the withheld tools are recorded. */
  kept(): Promise<void> {
    return this.#writing;
  }

  #faultOf(name: string, contract: string, envelope: ToolEnvelope): { readonly code: string; readonly message: string } | undefined {
    const { keys, verified } = this.#options;
    const revoked = keys.revoked(envelope.key);
    if (revoked !== undefined)
      return { code: "TRUST_KEY_REVOKED", message: `it is signed with the key ${envelope.key}, which was revoked ${revoked}.` };
    const key = keys.find(envelope.key);
    if (key === undefined)
      return { code: "TRUST_KEY_UNKNOWN", message: `it is signed with the key ${envelope.key}, which is not trusted.` };
    const bytes = toolEnvelopeBytes(name, contract, envelope);
    const signature = Buffer.from(envelope.signature, "base64");
    const memo = (): string =>
      hash("sha256", Buffer.concat([Buffer.from(key.bytes, "base64"), Buffer.from([signature.length]), signature, bytes]), "hex");
    if (!verified.check(memo, () => verify(null, bytes, toKeyObject(key), signature)))
      return { code: "TRUST_SIGNATURE_WRONG", message: `the signature was not made with ${named(key)} for this definition.` };
    if (envelope.expires !== undefined && Date.parse(envelope.expires) <= Date.now())
      return { code: "TRUST_EXPIRED", message: `the signature of ${named(key)} expired at ${envelope.expires}.` };
    return undefined;
  }

  #isApproved(name: string, contract: string): boolean {
    const digest = `sha256:${contract}`;
    const place = placeOf(name, digest);
    if (this.#approved.has(place)) return true;
    const found = this.#options.approvals.has({ kind: approvedKind, id: name, digest }, userOnly);
    if (typeof found === "boolean") return found;
    // Pushing does not wait for the store; after its answer, listeners push again.
    found.then(
      (has) => {
        if (!has) return;
        this.#approved.add(place);
        this.#events.emit("approved", undefined);
      },
      (error: unknown) => this.#options.onError(toError(error)),
    );
    return false;
  }

  /** Records withheld tools, so that another program can approve them. */
  #record(id: string, contract: string, definition: unknown): void {
    const digest = `sha256:${contract}`;
    if (this.#recorded.has(placeOf(id, digest))) return;
    this.#recorded.add(placeOf(id, digest));
    const detail = JSON.stringify(definition).length <= maxDetail ? definition : undefined;
    const approval: Approval = {
      kind: heldKind,
      id,
      digest,
      scope: user,
      approvedAt: new Date().toISOString(),
      ...(detail !== undefined && { detail }),
    };
    this.#writing = this.#writing
      .then(() => this.#options.approvals.remember(approval))
      .catch((error: unknown) => this.#options.onError(toError(error)));
  }

  #list(kind: string): Promise<readonly Approval[]> {
    return this.#options.approvals.list({ kind, scope: user });
  }
}

const heldKind = "external-held";
const approvedKind = "external-tool";
const user: ApprovalScope = Object.freeze({ kind: "user" });
const userOnly: readonly ApprovalScope[] = Object.freeze([user]);
const maxDetail = 400_000;

function placeOf(name: string, digest: string): string {
  return `${digest} ${name}`;
}

import type { ToolDefinition } from "skillhost";
import { isObject } from "./frames.ts";

/** The version of what hosts and workers send each other. Rises with every change that older ones cannot read. */
export const protocolVersion = 1;

/** From a host to the workers of a tool's contract; one of them gets it. */
export interface CallMessage {
  readonly v: number;
  /** Identifies the call in all of its attempts. It cannot be guessed, so only its host can cancel it. */
  readonly call: string;
  readonly session: string;
  readonly toolCall: string;
  /** Absent for `large` arguments: they follow to the worker that accepted the call. */
  readonly args?: unknown;
  readonly large?: boolean;
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** From a worker to the host that called. */
export type WorkerMessage = { readonly worker: string } & (
  | { readonly type: "accepted" | "alive" }
  /** The call was not run, and is not going to be. */
  | { readonly type: "refused"; readonly reason: RefusalReason; readonly message: string }
  | { readonly type: "progress"; readonly update: Readonly<Record<string, unknown>> }
  | { readonly type: "file"; readonly path: string; readonly content: string; readonly languageId?: string }
  | { readonly type: "ask"; readonly id: number; readonly kind: string; readonly data: unknown; readonly key?: string }
  | { readonly type: "call"; readonly id: number; readonly name: string; readonly args: unknown }
  | { readonly type: "result"; readonly value?: unknown }
  | { readonly type: "error"; readonly message: string; readonly stack?: string }
);

export type RefusalReason = "busy" | "version" | "arguments" | "unknown";

/** From the host that called to the worker that accepted. */
export type ControlMessage = { readonly call: string } & (
  | { readonly type: "cancel"; readonly reason: string }
  | { readonly type: "args"; readonly args: unknown }
  | { readonly type: "answer"; readonly id: number; readonly value?: unknown; readonly problem?: string }
);

/** That a worker is there, and which tools it has. */
export interface PresenceMessage {
  readonly v: number;
  readonly type: "here" | "gone";
  readonly worker: string;
  /** Digest of its list of tools. */
  readonly tools: string;
}

/** Bytes of a worker's list of tools. */
export const maxToolList: number = 16 * 1024 * 1024;

export interface OfferedTool {
  readonly signature: string;
  readonly definition: ToolDefinition;
}

const idPattern = /^[A-Za-z0-9_-]{8,64}$/;

function isFleetId(value: unknown): value is string {
  return typeof value === "string" && idPattern.test(value);
}

type Fields = Readonly<Record<string, unknown>>;

export function readCall(fields: Fields): CallMessage | undefined {
  const { v, call, session, toolCall, large, traceparent, tracestate } = fields;
  if (typeof v !== "number" || !isFleetId(call) || typeof session !== "string" || typeof toolCall !== "string") return undefined;
  return {
    v,
    call,
    session,
    toolCall,
    args: fields["args"],
    large: large === true,
    ...(typeof traceparent === "string" && { traceparent }),
    ...(typeof tracestate === "string" && { tracestate }),
  };
}

const neededFields: Readonly<Record<WorkerMessage["type"], Readonly<Record<string, "string" | "number" | "object">>>> = {
  accepted: {},
  alive: {},
  refused: { reason: "string", message: "string" },
  progress: { update: "object" },
  file: { path: "string", content: "string" },
  ask: { id: "number", kind: "string" },
  call: { id: "number", name: "string" },
  result: {},
  error: { message: "string" },
};

const neededControls: Readonly<Record<ControlMessage["type"], Readonly<Record<string, "string" | "number">>>> = {
  cancel: { reason: "string" },
  args: {},
  answer: { id: "number" },
};

export function readWorkerMessage(fields: Fields): WorkerMessage | undefined {
  return isFleetId(fields["worker"]) && hasFields(fields, neededFields) ? (fields as unknown as WorkerMessage) : undefined;
}

export function readControl(fields: Fields): ControlMessage | undefined {
  return isFleetId(fields["call"]) && hasFields(fields, neededControls) ? (fields as unknown as ControlMessage) : undefined;
}

function hasFields(fields: Fields, known: Readonly<Record<string, Readonly<Record<string, string>>>>): boolean {
  const { type } = fields;
  if (typeof type !== "string" || !Object.hasOwn(known, type)) return false;
  return Object.entries(known[type] ?? {}).every(([name, kind]) =>
    kind === "object" ? isObject(fields[name]) : typeof fields[name] === kind,
  );
}

export function readPresence(fields: Fields): PresenceMessage | undefined {
  const { v, type, worker, tools } = fields;
  const isPresence = typeof v === "number" && (type === "here" || type === "gone") && isFleetId(worker) && typeof tools === "string";
  return isPresence ? { v, type, worker, tools } : undefined;
}

/** The offers that have the form of offers; whether they are tools is decided when they are made. */
export function readOffers(fields: Fields): readonly OfferedTool[] {
  const list = Array.isArray(fields["tools"]) ? (fields["tools"] as unknown[]) : [];
  return list.filter((entry): entry is OfferedTool => {
    if (!isObject(entry) || !isObject(entry["definition"])) return false;
    return typeof entry["signature"] === "string" && typeof entry["definition"]["name"] === "string";
  });
}

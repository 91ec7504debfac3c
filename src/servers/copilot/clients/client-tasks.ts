import { randomUUID } from "node:crypto";
import type { Client } from "./client.ts";

/** What a client says about work that it does itself. */
export interface TaskRegistration {
  /** The client's own name for it: a second registration is the same task. */
  readonly clientTaskId: string;
  readonly description: string;
  readonly displayName: string | undefined;
  readonly isCancellable: boolean;
  readonly expectedSequence: number | undefined;
}

/** One step of a task. Undefined: unchanged; null: cleared. */
export type TaskUpdate =
  | {
      readonly kind: "progress";
      readonly status: "running" | "idle" | undefined;
      readonly message: string | undefined;
      readonly phase: string | null | undefined;
      readonly percentage: number | null | undefined;
    }
  | { readonly kind: "completed"; readonly message: string | undefined; readonly result: unknown }
  | { readonly kind: "failed"; readonly message: string | undefined; readonly error: string; readonly code: string | undefined }
  | { readonly kind: "cancelled"; readonly message: string | undefined; readonly reason: string | undefined };

type Status = "running" | "idle" | "completed" | "failed" | "cancelled" | "orphaned";

interface Task {
  readonly id: string;
  readonly clientTaskId: string;
  readonly principal: string;
  readonly startedAt: Date;
  description: string;
  displayName: string | undefined;
  isCancellable: boolean;
  owner: Client;
  status: Status;
  sequence: number;
  updatedAt: Date;
  completedAt?: Date;
  /** When the owner began to work on it, and how long it did before that. */
  activeSince: Date | undefined;
  activeMs: number;
  idleSince?: Date | undefined;
  orphanedAt?: Date;
  reclaimedAt?: Date;
  lastUpdate: string;
  outcome: object;
  phase?: string;
  percentage?: number;
  /** Concurrent cancellations are one request to the owner. */
  cancelling: Promise<boolean> | undefined;
  readonly activity: { readonly message: string; readonly timestamp: string }[];
}

const maxActivity = 10;
const maxTasks = 1_000;

/** The work that clients of one session do themselves and that others follow. */
export class ClientTasks {
  readonly #sessionId: string;
  readonly #changed: () => void;
  readonly #tasks = new Map<string, Task>();

  constructor(sessionId: string, changed: () => void) {
    this.#sessionId = sessionId;
    this.#changed = changed;
  }

  list(): readonly object[] {
    return Array.from(this.#tasks.values(), describe);
  }

  has(id: string): boolean {
    return this.#tasks.has(id);
  }

  /** @throws Error when the sequence is another one, or there are too many tasks. */
  register(owner: Client, given: TaskRegistration): { readonly task: object; readonly created: boolean; readonly reclaimed: boolean } {
    const principal = principalOf(owner);
    const known = [...this.#tasks.values()].find((task) => task.principal === principal && task.clientTaskId === given.clientTaskId);
    if (known === undefined) return { task: describe(this.#create(owner, principal, given)), created: true, reclaimed: false };
    const { expectedSequence = known.sequence } = given;
    if (expectedSequence !== known.sequence)
      throw new Error(`Task ${JSON.stringify(given.clientTaskId)} is at sequence ${known.sequence}, not ${expectedSequence}.`);
    const reclaimed = known.status === "orphaned";
    if (reclaimed) {
      known.owner = owner;
      known.reclaimedAt = new Date();
      known.isCancellable = given.isCancellable;
      setStatus(known, "running");
      this.#changed();
    }
    return { task: describe(known), created: false, reclaimed };
  }

  #create(owner: Client, principal: string, { clientTaskId, description, displayName, isCancellable }: TaskRegistration): Task {
    if (this.#tasks.size >= maxTasks)
      throw new Error(`This session has ${maxTasks} tasks of clients. Remove some with session.tasks.remove.`);
    const now = new Date();
    const task: Task = {
      id: randomUUID(),
      clientTaskId,
      principal,
      description,
      displayName,
      isCancellable,
      owner,
      status: "running",
      sequence: 0,
      startedAt: now,
      updatedAt: now,
      activeSince: now,
      activeMs: 0,
      lastUpdate: "",
      outcome: {},
      cancelling: undefined,
      activity: [],
    };
    this.#tasks.set(task.id, task);
    this.#changed();
    return task;
  }

  /** Each update has the next sequence number. The last one may be repeated. @throws Error when it cannot be applied. */
  update(owner: Client, id: string, sequence: number, update: TaskUpdate): { task: object; applied: boolean; duplicate: boolean } {
    const task = this.#tasks.get(id);
    if (task === undefined)
      throw new Error(`There is no task ${JSON.stringify(id.slice(0, 200))}. Register it with session.tasks.register.`);
    if (task.owner !== owner || task.status === "orphaned")
      throw new Error(`Task ${id} belongs to another client. Only its owner updates it.`);
    const text = JSON.stringify(update);
    if (sequence === task.sequence && text === task.lastUpdate) return { task: describe(task), applied: false, duplicate: true };
    if (isOver(task)) throw new Error(`Task ${id} is ${task.status}, so it is not updated any more.`);
    if (sequence !== task.sequence + 1)
      throw new Error(`Task ${id} is at sequence ${task.sequence}, so the next update has ${task.sequence + 1}.`);
    task.sequence = sequence;
    task.lastUpdate = text;
    apply(task, update);
    this.#changed();
    return { task: describe(task), applied: true, duplicate: false };
  }

  progressOf(id: string): object | null {
    const task = this.#tasks.get(id);
    if (task === undefined) return null;
    const { status, sequence, updatedAt, phase, percentage, activity } = task;
    const lastMessage = activity.at(-1)?.message;
    return {
      type: "client",
      status,
      sequence,
      updatedAt: updatedAt.toISOString(),
      ...(phase !== undefined && { phase }),
      ...(percentage !== undefined && { percentage }),
      ...(lastMessage !== undefined && { lastMessage }),
      recentActivity: activity,
    };
  }

  /** Asks the owner to stop the work. False: it does not confirm that the work has stopped. */
  async cancel(id: string): Promise<boolean> {
    const task = this.#tasks.get(id);
    if (task === undefined || !canCancel(task)) return false;
    task.cancelling ??= this.#requestEnd(task).finally(() => {
      task.cancelling = undefined;
    });
    return task.cancelling;
  }

  async #requestEnd(task: Task): Promise<boolean> {
    const { id, clientTaskId, owner } = task;
    const request = { sessionId: this.#sessionId, id, clientTaskId, cancellationId: randomUUID(), reason: "cancel_requested" };
    const answer = (await owner.wire.request("tasks.cancel", request).catch(() => undefined)) as
      | { readonly cancelled?: unknown }
      | undefined;
    if (answer?.cancelled !== true) return false;
    // The owner may have reported its end already.
    if (!isOver(task)) {
      apply(task, { kind: "cancelled", message: undefined, reason: undefined });
      this.#changed();
    }
    return true;
  }

  /** Forgets a task that is over or orphaned. */
  remove(id: string): boolean {
    const task = this.#tasks.get(id);
    if (task === undefined || !(isOver(task) || task.status === "orphaned")) return false;
    this.#tasks.delete(id);
    this.#changed();
    return true;
  }

  /** What becomes of the work of a client that has left is unknown, until it comes back. */
  orphan(owner: Client): void {
    const own = [...this.#tasks.values()].filter((task) => task.owner === owner && !isOver(task) && task.status !== "orphaned");
    for (const task of own) {
      task.orphanedAt = new Date();
      setStatus(task, "orphaned");
    }
    if (own.length > 0) this.#changed();
  }
}

/** An extension that is started again is the same owner; another connection of a program is not. */
function principalOf({ extension, id }: Client): string {
  return extension === undefined ? id : `extension ${extension.id}`;
}

function apply(task: Task, update: TaskUpdate): void {
  if (update.message !== undefined && update.message !== "") {
    task.activity.push({ message: update.message, timestamp: new Date().toISOString() });
    task.activity.splice(0, task.activity.length - maxActivity);
  }
  if (update.kind === "progress") {
    const { status = task.status, phase, percentage } = update;
    if (phase === null) delete task.phase;
    else if (phase !== undefined) task.phase = phase;
    if (percentage === null) delete task.percentage;
    else if (percentage !== undefined) task.percentage = percentage;
    setStatus(task, status);
    return;
  }
  task.outcome = outcomeOf(update);
  task.completedAt = new Date();
  setStatus(task, update.kind);
}

function outcomeOf(update: Exclude<TaskUpdate, { kind: "progress" }>): object {
  if (update.kind === "completed") return update.result === undefined ? {} : { result: update.result };
  if (update.kind === "cancelled") return update.reason === undefined ? {} : { cancellationReason: update.reason };
  return { error: update.error, ...(update.code !== undefined && { errorCode: update.code }) };
}

function setStatus(task: Task, status: Status): void {
  const now = new Date();
  if (status !== "running" && task.activeSince !== undefined) {
    task.activeMs += now.getTime() - task.activeSince.getTime();
    task.activeSince = undefined;
  }
  if (status === "running") task.activeSince ??= now;
  task.idleSince = status === "idle" ? (task.idleSince ?? now) : undefined;
  task.status = status;
  task.updatedAt = now;
}

function isOver({ status }: Task): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

function canCancel(task: Task): boolean {
  return task.isCancellable && !isOver(task) && task.status !== "orphaned";
}

function describe(task: Task): object {
  const { id, clientTaskId, displayName, description, status, owner, activeMs, sequence, outcome } = task;
  const times = { completedAt: task.completedAt, activeStartedAt: task.activeSince, idleSince: task.idleSince };
  const { orphanedAt, reclaimedAt } = task;
  const isGone = status === "orphaned";
  return {
    type: "client",
    id,
    clientTaskId,
    ...(displayName !== undefined && { displayName }),
    description,
    status,
    owner: {
      participantId: task.principal,
      joinId: owner.id,
      kind: owner.extension === undefined ? "sdk" : "extension",
      presence: isGone ? "disconnected" : "connected",
      ...(isGone && { disconnectedAt: orphanedAt?.toISOString() }),
    },
    startedAt: task.startedAt.toISOString(),
    updatedAt: task.updatedAt.toISOString(),
    ...textsOf({ ...times, orphanedAt, reclaimedAt }),
    activeTimeMs: activeMs,
    executionMode: "background",
    canCancel: canCancel(task),
    sequence,
    ...outcome,
  };
}

function textsOf(times: Readonly<Record<string, Date | undefined>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(times).flatMap(([name, time]) => (time === undefined ? [] : [[name, time.toISOString()]])));
}

import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { isDeclaredTool } from "../../formats/skills/skill-permissions.ts";
import { ModuleError } from "../../io/module-loader/module-error.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { type ChildFrame, parseFrame } from "./child-frames.ts";
import type { ChildPlace, ChildTransport, OpenChild } from "./child-transport.ts";

/** A child whose event loop does not answer a cancellation for this long is ended. */
const graceMs = 50;
/** Counted in turns of this process's event loop, so that time in which this process did not run either does not count. */
const graceTurns = 5;
/** Messages of one call besides its result. More are taken for a flood, which ends the child. */
const maxMessages = 10_000;

interface Pending {
  readonly context: ToolContext | undefined;
  settle(value: unknown): void;
  fail(error: Error): void;
  messages: number;
  /** The child has received its cancellation, so its event loop runs. */
  isCancelled: boolean;
}

export interface ChildRequestOptions {
  /** Added to the request. */
  readonly data?: ChildFrame | undefined;
  readonly context?: ToolContext | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The host's end of the channel to a child. The host chooses the ids, and a message that refers to an id that was never given out, or that
 * is not a valid frame, ends the child: its code is untrusted.
 */
export class SkillChannel {
  /** Tools that its code may call. Absent: all. */
  readonly #tools: readonly string[] | undefined;
  readonly #listener: ChannelListener;
  readonly #pending = new Map<number, Pending>();
  /** By the call that began it, and its number. */
  readonly #background = new Map<string, () => void>();
  /** Calls that did not stop after their cancellation. */
  readonly #abandoned = new Set<number>();
  #transport: ChildTransport | undefined;
  #lastId = 0;
  #stray = 0;
  #end: string | undefined;
  #reason: string | undefined;
  #killed: Promise<void> | undefined;

  /** Rejects when the child cannot be started. */
  static async open(start: OpenChild, place: ChildPlace, listener: ChannelListener = noListener): Promise<SkillChannel> {
    const channel = new SkillChannel(place.tools, listener);
    channel.#transport = await start(place, {
      received: (text) => channel.#receive(text),
      ended: (reason) => channel.#ended(reason),
    });
    return channel;
  }

  private constructor(tools: readonly string[] | undefined, listener: ChannelListener) {
    this.#tools = tools;
    this.#listener = listener;
  }

  get isOpen(): boolean {
    return this.#end === undefined && this.#reason === undefined;
  }

  /** Sends a request and settles with its answer; rejects with the error of the child's code, or with the reason that the child ended. */
  request(kind: string, data: ChildFrame, { context, signal, data: more }: ChildRequestOptions = {}): Promise<unknown> {
    if (!this.isOpen) return Promise.reject(new Error(`The code of this skill is not running: ${this.#end ?? this.#reason}.`));
    const id = ++this.#lastId;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { context, settle: resolve, fail: reject, messages: 0, isCancelled: false });
    });
    try {
      this.#send({ ...data, ...more, kind, id });
    } catch (error) {
      this.#pending.delete(id);
      return Promise.reject(new Error(`The arguments cannot be sent to an isolated skill: ${errorMessage(error)}`));
    }
    return signal === undefined ? answer : this.#cancelable(id, answer, signal);
  }

  /** Ends the child. Everything that it has not answered fails with this reason. */
  kill(reason: string): Promise<void> {
    this.#reason ??= reason;
    this.#killed ??= this.#transport?.kill() ?? Promise.resolve();
    return this.#killed;
  }

  #send(frame: ChildFrame): void {
    this.#transport?.send(JSON.stringify(frame));
  }

  #cancelable(id: number, answer: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    const cancel = (): void => {
      if (this.isOpen) this.#send({ kind: "cancel", id, reason: errorMessage(signal.reason).slice(0, 1_000) });
      const wait = (turns: number): void => {
        timer = setTimeout(() => (turns > 1 ? wait(turns - 1) : this.#late(id)), graceMs / graceTurns);
      };
      wait(graceTurns);
    };
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
    return answer.finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", cancel);
    });
  }

  /** A call did not stop after its cancellation. A child that runs ends only when it has nothing else to do. */
  #late(id: number): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#abandoned.add(id);
    if (pending.isCancelled) this.#endIdle();
    else void this.kill(`a call did not stop within ${graceMs} ms after its deadline or cancellation`);
  }

  #endIdle(): void {
    if (this.#abandoned.size === 0 || [...this.#pending.keys()].some((id) => !this.#abandoned.has(id))) return;
    void this.kill("it only ran calls that did not stop after their cancellation");
  }

  #receive(text: string): void {
    if (!this.isOpen) return;
    const frame = parseFrame(text);
    const id = frame?.["id"];
    if (frame === undefined || typeof id !== "number" || !Number.isInteger(id) || id < 1 || id > this.#lastId) {
      void this.kill("it sent a message that does not belong to any call");
      return;
    }
    if (frame["kind"] === "changed") {
      const { listener } = frame;
      if (typeof listener === "number") this.#listener.changed(listener);
      else this.#strayed();
      return;
    }
    if (frame["kind"] === "settled") {
      const { work } = frame;
      const settle = typeof work === "number" ? this.#background.get(workKey(id, work)) : undefined;
      if (settle === undefined) this.#strayed();
      else settle();
      return;
    }
    const pending = this.#pending.get(id);
    if (pending !== undefined) this.#ofCall(id, frame, pending);
    else this.#strayed();
  }

  /** A message may cross the end of its call. */
  #strayed(): void {
    if (++this.#stray > maxMessages) void this.kill("it sent too many messages for calls that have ended");
  }

  #ofCall(id: number, frame: ChildFrame, pending: Pending): void {
    const kind = frame["kind"];
    if (kind === "result" || kind === "error") {
      this.#pending.delete(id);
      this.#abandoned.delete(id);
      if (kind === "result") pending.settle(frame["value"]);
      else pending.fail(toRemoteError(frame["error"]));
      this.#endIdle();
      return;
    }
    if (kind === "cancelled") {
      pending.isCancelled = true;
      return;
    }
    const { context } = pending;
    if (++pending.messages > maxMessages) void this.kill(`a call sent more than ${maxMessages} messages`);
    else if (context === undefined) void this.kill("it sent a message that only a call may send");
    else {
      try {
        this.#message(kind, frame, context);
      } catch (error) {
        this.#answer(id, frame["ask"], { error: errorMessage(error) });
      }
    }
  }

  #message(kind: unknown, frame: ChildFrame, context: ToolContext): void {
    const { id, ask } = frame;
    if (kind === "progress" && isRecord(frame["update"])) {
      context.progress(frame["update"]);
    } else if (kind === "file") {
      reportFile(frame, context);
    } else if (kind === "background" && typeof frame["work"] === "number") {
      this.#beginWork(workKey(id, frame["work"]), context);
    } else if (kind === "callTool" && typeof frame["ref"] === "string") {
      const { ref } = frame as { ref: string };
      if (this.#tools !== undefined && !isDeclaredTool(this.#tools, ref)) this.#answer(id, ask, { error: undeclaredTool(ref) });
      else void this.#reply(id, ask, context.callTool(ref, frame["args"] as never));
    } else if (kind === "ask" && typeof frame["what"] === "string" && isRecord(frame["data"])) {
      void this.#reply(id, ask, context.ask(frame["what"] as "userInput", frame["data"] as never, optionsOf(frame["options"])));
    } else {
      void this.kill("it sent a message of an unknown form");
    }
  }

  #beginWork(work: string, context: ToolContext): void {
    if (this.#background.has(work)) return;
    context.background(
      new Promise<void>((resolve) => {
        this.#background.set(work, () => {
          this.#background.delete(work);
          resolve();
        });
      }),
    );
  }

  async #reply(id: unknown, ask: unknown, answer: Promise<unknown>): Promise<void> {
    try {
      this.#answer(id, ask, { value: await answer });
    } catch (error) {
      this.#answer(id, ask, { error: errorMessage(error) });
    }
  }

  #answer(id: unknown, ask: unknown, outcome: ChildFrame): void {
    if (this.isOpen) this.#send({ ...outcome, kind: "answer", id, ask });
  }

  #ended(reason: string): void {
    this.#end = this.#reason ?? reason;
    const message = `The code of this skill ended before it answered: ${this.#end}. Whether the call had an effect is unknown.`;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { fail } of pending) fail(new ChildEnded(message));
    for (const settle of [...this.#background.values()]) settle();
    this.#listener.ended();
  }
}

/** What a channel reports besides answers. */
export interface ChannelListener {
  /** A list or a resource has changed, of the listener with this number, which the child chose. */
  changed(listener: number): void;
  ended(): void;
}

const noListener: ChannelListener = { changed: () => {}, ended: () => {} };

/** The child ended before it answered. */
export class ChildEnded extends Error {
  override readonly name = "ChildEnded";
}

function workKey(id: unknown, work: number): string {
  return `${id}/${work}`;
}

function undeclaredTool(ref: string): string {
  const name = JSON.stringify(ref.slice(0, 200));
  return `The skill does not declare that it calls the tool ${name}. Add it to "tools", or its MCP server to "servers", of "permissions" in skill.json.`;
}

function reportFile({ path, content, options }: ChildFrame, context: ToolContext): void {
  if (typeof path !== "string" || typeof content !== "string") return;
  const { languageId, before, beforeBase64 } = isRecord(options) ? options : {};
  const bytes = typeof beforeBase64 === "string" ? Buffer.from(beforeBase64, "base64") : undefined;
  const text = typeof before === "string" || before === null ? before : undefined;
  const state = bytes ?? text;
  context.fileChanged(path, content, {
    ...(typeof languageId === "string" && { languageId }),
    ...(state !== undefined && { before: state }),
  });
}

function optionsOf(value: unknown): { readonly key?: string } {
  return isRecord(value) && typeof value["key"] === "string" ? { key: value["key"] } : {};
}

function toRemoteError(value: unknown): Error {
  const { name, message, stack, code, file, position, files } = isRecord(value) ? value : {};
  const text = typeof message === "string" ? message.slice(0, 10_000) : "The code of this skill failed without a message.";
  const at = isRecord(position) ? { line: placeOf(position["line"]), column: placeOf(position["column"]) } : undefined;
  const error =
    typeof code === "string" && moduleCodes.has(code)
      ? new ModuleError(code as "MODULE_THREW", text, {
          file: typeof file === "string" ? file : undefined,
          position: at,
          files: Array.isArray(files) ? files.filter((each): each is string => typeof each === "string") : [],
        })
      : new Error(text);
  if (!(error instanceof ModuleError) && typeof name === "string") error.name = name.slice(0, 100);
  if (typeof stack === "string") error.stack = stack.slice(0, 20_000);
  return error;
}

/** A line or column. Not by `Number`, which throws for an object whose `toString` is not a function. */
function placeOf(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 1;
}

const moduleCodes = new Set([
  "MODULE_SYNTAX",
  "MODULE_NOT_FOUND",
  "MODULE_TOO_LARGE",
  "MODULE_UNREADABLE",
  "MODULE_EXPORT_MISSING",
  "MODULE_THREW",
  "MODULE_EXITED",
  "MODULE_ABANDONED",
]);

import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { CallOutcome, Logger, PreparedCall, Session, Tool } from "skillhost";
import { cancelledReply, errorReply, toReply } from "./tool-reply.ts";
import {
  type ClientToolResult,
  type Confirmation,
  type Fields,
  type Invocation,
  type Reply,
  readConfirmation,
  readInvocation,
} from "./wire.ts";

export interface ClientToolCallsParts {
  readonly session: Session;
  /** Maximum characters of a result. */
  readonly outputLimit: number;
  readonly log: Logger;
  /** Decides about a call of a tool that does not belong to the session. */
  permit(confirmation: Confirmation, signal: AbortSignal): Promise<boolean>;
  /** Called when a tool that ends turns has succeeded. A rejected call does not end the turn: the model reads the rejection. */
  onTurnOver(conversationId: string): void;
}

export type ConfirmationResult = { readonly result: "accept" | "dismiss" };

/** A call that was confirmed and has not been made yet. */
interface Confirmed {
  readonly prepared: PreparedCall;
  readonly input: Fields;
  readonly stop: AbortController;
  /** Its outcome, if it will not run. */
  readonly outcome: CallOutcome | undefined;
}

/**
 * Answers the server's calls of our tools and its requests for confirmation. Every call goes through the session with its
 * hooks, checks and permissions. The answer always has the format that the server expects.
 */
export class ClientToolCalls {
  readonly #parts: ClientToolCallsParts;
  readonly #confirmed = new Map<string, Confirmed>();
  /** Running calls by conversation, since the server does not cancel its requests. */
  readonly #running = new Map<string, Set<AbortController>>();
  /** The contents that running calls have written. */
  readonly #written = new Map<string, string | undefined>();
  #isClosed = false;

  constructor(parts: ClientToolCallsParts) {
    this.#parts = parts;
  }

  async invoke(params: unknown, signal: AbortSignal): Promise<Reply<ClientToolResult>> {
    const call = readInvocation(params);
    if (call === undefined) return errorReply("The call is not valid: it has no tool name.");
    if (this.#isClosed) return cancelledReply();
    const confirmed = this.#take(call);
    const stop = confirmed?.stop ?? new AbortController();
    const end = this.#begin(call.conversationId, stop, signal);
    try {
      const { outcome, written } = confirmed?.outcome
        ? { outcome: confirmed.outcome, written: undefined }
        : await this.#run(confirmed?.prepared ?? (await this.#prepare(call, call.input, stop.signal)));
      if (outcome.endsTurn && outcome.result.resultType === "success") this.#parts.onTurnOver(call.conversationId);
      return toReply(outcome, this.#parts.outputLimit, written);
    } catch (error) {
      // The session is closed, or this is a defect: the model does not need the details.
      this.#parts.log.error("A call of the language server failed.", { tool: call.name, error });
      return errorReply("The tool could not be called.");
    } finally {
      end();
    }
  }

  /** Records that a call has written a file. */
  noteWritten({ toolCallId, content }: { readonly toolCallId: string; readonly content: string }): void {
    if (this.#written.has(toolCallId)) this.#written.set(toolCallId, content);
  }

  async confirm(params: unknown, signal: AbortSignal): Promise<Reply<ConfirmationResult>> {
    const asked = readConfirmation(params);
    if (asked === undefined || this.#isClosed) return dismissed;
    const stop = new AbortController();
    const end = this.#begin(asked.conversationId, stop, signal);
    try {
      return (await this.#isAllowed(asked, stop)) && !stop.signal.aborted ? accepted : dismissed;
    } catch (error) {
      this.#parts.log.error("A confirmation for the language server failed, so the call was denied.", { tool: asked.name, error });
      return dismissed;
    } finally {
      end();
    }
  }

  /** Ends the calls of a conversation: aborts the running ones and drops the confirmed ones. */
  stop(conversationId: string): void {
    for (const controller of this.#running.get(conversationId) ?? []) controller.abort();
    for (const [key, confirmed] of this.#confirmed) if (key.startsWith(`${conversationId}\n`)) this.#drop(key, confirmed);
  }

  close(): void {
    this.#isClosed = true;
    for (const controllers of this.#running.values()) for (const controller of controllers) controller.abort();
    for (const [key, confirmed] of this.#confirmed) this.#drop(key, confirmed);
  }

  async #run(prepared: PreparedCall): Promise<{ readonly outcome: CallOutcome; readonly written: string | undefined }> {
    const { id } = prepared.call;
    this.#written.set(id, undefined);
    try {
      const outcome = await this.#parts.session.run(prepared);
      return { outcome, written: this.#written.get(id) };
    } finally {
      this.#written.delete(id);
    }
  }

  async #prepare({ name, toolCallId, turnId }: Invocation, input: Fields, signal: AbortSignal): Promise<PreparedCall> {
    const { session } = this.#parts;
    const scope = session.createScope({ signal, ...(turnId !== "" && { turnId }) });
    const [prepared] = await session.prepare([{ id: toolCallId || randomUUID(), name, arguments: input }], scope);
    return prepared!;
  }

  async #isAllowed(asked: Confirmation, stop: AbortController): Promise<boolean> {
    const { executables } = this.#parts.session.catalog;
    // The user must see what is really written, which is known only when the server makes the call.
    if (isWrapperOf(executables, asked.name)) return true;
    return executables.has(asked.name) ? this.#confirmOurs(asked, stop) : this.#parts.permit(asked, stop.signal);
  }

  /** Prepares the call now, so that the user is not asked again when it is made. */
  async #confirmOurs(asked: Confirmation, stop: AbortController): Promise<boolean> {
    const { session } = this.#parts;
    const input = withoutExtras(asked.input, session.catalog.executables.get(asked.name)?.definition.parameters);
    const prepared = await this.#prepare(asked, input, stop.signal);
    await prepared.decided;
    const outcome = prepared.kind === "settled" ? await session.run(prepared) : undefined;
    if (outcome !== undefined && isDenied(outcome)) return false;
    const confirmed = { prepared, input, stop, outcome };
    if (stop.signal.aborted || this.#isClosed) this.#drop(keyOf(asked), confirmed);
    else this.#confirmed.set(keyOf(asked), confirmed);
    return true;
  }

  #take(call: Invocation): Confirmed | undefined {
    const key = keyOf(call);
    const confirmed = this.#confirmed.get(key);
    if (confirmed === undefined) return undefined;
    this.#confirmed.delete(key);
    if (isDeepStrictEqual(confirmed.input, call.input)) return confirmed;
    // Not the call that was confirmed: it is prepared again.
    this.#drop(key, confirmed);
    return undefined;
  }

  #drop(key: string, { prepared, stop, outcome }: Confirmed): void {
    this.#confirmed.delete(key);
    stop.abort();
    if (outcome !== undefined) return;
    const { session, log } = this.#parts;
    // It settles as cancelled, so that its end is reported, too.
    session.run(prepared).catch((error: unknown) => log.debug("A confirmed call that was not made could not be ended.", { error }));
  }

  #begin(conversationId: string, controller: AbortController, signal: AbortSignal): () => void {
    const running = this.#running.get(conversationId) ?? new Set();
    this.#running.set(conversationId, running);
    running.add(controller);
    const abort = (): void => controller.abort();
    signal.addEventListener("abort", abort, { once: true });
    return () => {
      signal.removeEventListener("abort", abort);
      running.delete(controller);
      if (running.size === 0) this.#running.delete(conversationId);
    };
  }
}

const accepted: Reply<ConfirmationResult> = [{ result: "accept" }, null];
const dismissed: Reply<ConfirmationResult> = [{ result: "dismiss" }, null];

function keyOf({ conversationId, toolCallId, name }: Invocation): string {
  return `${conversationId}\n${toolCallId}\n${name}`;
}

/** Whether the server prepares the edit itself and then uses our tool to write it. */
function isWrapperOf(tools: ReadonlyMap<string, Tool>, name: string): boolean {
  const own = name.replace("copilot.", "");
  return wrapped.has(own) && tools.has(own);
}

const wrapped: ReadonlySet<string> = new Set(["create_file", "insert_edit_into_file", "replace_string_in_file", "apply_patch"]);

/** Whether the user or a rule denied the call, as opposed to an error in it. */
function isDenied({ code, result: { resultType } }: CallOutcome): boolean {
  return resultType === "denied" || resultType === "rejected" || /^(permission|denied)_/.test(code);
}

// Fields that the server adds to the arguments when it asks for confirmation.
const extras = ["toolType", "filePath", "commandLineType", "mcpServerName", "mcpToolName", "mcpType"];

/** Removes these fields, except those that the tool itself declares. */
function withoutExtras(input: Fields, parameters: Fields | undefined): Fields {
  const properties = parameters?.["properties"];
  const isOwn = (key: string): boolean => typeof properties === "object" && properties !== null && Object.hasOwn(properties, key);
  return Object.fromEntries(Object.entries(input).filter(([key]) => !extras.includes(key) || isOwn(key)));
}

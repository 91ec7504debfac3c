import { shorten } from "../base/text.ts";
import type { RecordedEvent } from "../session/history/events.ts";
import type { Output } from "./output.ts";
import type { CliIo } from "./process-io.ts";
import { visibleLine, visibleText } from "./terminal-style.ts";

/** Shows a running turn: the model's text on stdout, calls with their duration on stderr. */
export interface TurnReport {
  onEvent(event: RecordedEvent): void;
  /** The tools whose calls were denied for lack of permission. */
  readonly unallowed: ReadonlySet<string>;
  /** Whether the turn was stopped at its limit of steps. */
  readonly hitLimit: boolean;
}

export function createTurnReport(io: CliIo, out: Output): TurnReport {
  return new Report(io, out);
}

interface Call {
  readonly name: string;
  readonly since: number;
}

type Data = RecordedEvent["data"];

class Report implements TurnReport {
  readonly unallowed: Set<string> = new Set();
  hitLimit = false;
  readonly #io: CliIo;
  readonly #out: Output;
  readonly #calls = new Map<unknown, Call>();
  /** The shown part of the message that is being streamed. */
  #streamed = "";

  constructor(io: CliIo, out: Output) {
    this.#io = io;
    this.#out = out;
  }

  onEvent({ type, data, agentId }: RecordedEvent): void {
    if (type === "session.info" && data["infoType"] === "iteration_limit") this.hitLimit = true;
    if (type === "permission.completed") {
      const result = data["result"] as { readonly kind?: unknown } | undefined;
      const call = this.#calls.get(data["toolCallId"]);
      if (call !== undefined && result?.kind === "denied-no-approval-rule-and-could-not-request-from-user") this.unallowed.add(call.name);
    }
    if (type === "tool.execution_start") {
      const name = String(data["toolName"]);
      this.#calls.set(data["toolCallId"], { name, since: performance.now() });
      this.#out.note(`> ${who(agentId)}${visibleLine(name)} ${visibleLine(shorten(JSON.stringify(data["arguments"]) ?? "", 200))}`);
    }
    if (type === "tool.execution_complete") this.#end(data, agentId);
    if (this.#out.isJson || agentId !== undefined) return;
    if (type === "assistant.message_delta") this.#stream(String(data["deltaContent"]));
    if (type === "assistant.message") {
      const content = String(data["content"]);
      if (this.#streamed === "") this.#stream(content);
      this.#endLine();
    }
    if (type === "session.error") this.#endLine();
    if (type === "session.info" || type === "session.warning") this.#out.note(visibleText(String(data["message"])));
  }

  #stream(text: string): void {
    this.#streamed += text;
    this.#write(text);
  }

  #endLine(): void {
    if (this.#streamed !== "" && !this.#streamed.endsWith("\n")) this.#write("\n");
    this.#streamed = "";
  }

  // A terminal interprets control characters; a pipe or file gets the text unchanged.
  #write(text: string): void {
    this.#io.stdout.write(this.#io.stdout.isTTY ? visibleText(text) : text);
  }

  #end(data: Data, agentId: string | undefined): void {
    const call = this.#calls.get(data["toolCallId"]);
    this.#calls.delete(data["toolCallId"]);
    if (call === undefined) return;
    const took = `${Math.round(performance.now() - call.since)} ms`;
    const { style } = this.#out;
    const error = data["error"] as { readonly message?: unknown } | undefined;
    const outcome = data["success"] === true ? `done, ${took}` : `failed, ${took}: ${visibleLine(shorten(String(error?.message), 200))}`;
    this.#out.note(
      `${data["success"] === true ? style.marks.added : style.marks.failed} ${who(agentId)}${visibleLine(call.name)} ${outcome}`,
    );
  }
}

function who(agentId: string | undefined): string {
  return agentId === undefined ? "" : `[${visibleLine(agentId)}] `;
}

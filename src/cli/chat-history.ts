import { counted, shorten } from "../base/text.ts";
import type { Host } from "../host/host.ts";
import type { Session } from "../session/session.ts";
import { usageError } from "./cli-error.ts";
import type { Output } from "./output.ts";
import { visibleLine, visibleText } from "./terminal-style.ts";

/** The commands of a conversation about what was said before. */
export class ChatHistory {
  readonly #host: Host;
  readonly #session: Session;
  readonly #out: Output;

  constructor(host: Host, session: Session, out: Output) {
    this.#host = host;
    this.#session = session;
    this.#out = out;
  }

  /** Without words: lists the messages of the user. Otherwise takes one back with all after it, and with `files` what tools did to files. */
  async rewind(words: string): Promise<void> {
    const points = await this.#session.conversation.rewindPoints();
    if (words === "")
      return this.#list(
        points.map(({ prompt }, index) => `${index + 1}  ${shown(prompt)}`),
        "Nothing was said yet.",
      );
    const [, number = "", files] = /^(\d{1,6})(\s+files)?$/.exec(words) ?? [];
    const point = points[Number(number) - 1];
    if (point === undefined) throw usageError(`/rewind needs the number of a message, which /rewind lists, and may have "files" after it.`);
    const { outcome, eventsRemoved, restoredFiles, skippedFiles, error } = await this.#session.rewind(point.eventId, {
      restoreFiles: files !== undefined,
    });
    if (eventsRemoved === undefined)
      throw new Error(`The conversation is as it was (${outcome}): ${error ?? "files could not be restored"}.`);
    this.#out.note(`Message ${number} and what followed it are taken back: ${shown(point.prompt)}`);
    if (files === undefined) return;
    this.#out.note(`${counted(restoredFiles.length, "file")} restored.`);
    for (const file of restoredFiles) this.#out.note(`  ${this.#out.path(file)}`);
    for (const { path, reason } of skippedFiles) this.#out.note(`  ${this.#out.path(path)} stays as it is: ${visibleLine(reason)}`);
  }

  /** Lists the summaries of the conversation, or prints one. */
  async checkpoints(words: string): Promise<void> {
    const { workspace } = this.#session;
    if (words === "") {
      const all = await workspace.listCheckpoints();
      return this.#list(
        all.map(({ number, title }) => `${number}  ${shown(title)}`),
        "The conversation was not summarized yet.",
      );
    }
    const text = /^\d{1,6}$/.test(words) ? await workspace.readCheckpoint(Number(words)) : undefined;
    if (text === undefined) throw usageError("/checkpoints needs the number of a summary, which /checkpoints lists.");
    this.#out.note(visibleText(text));
  }

  /** Stores a copy of the session that can be continued by itself. */
  async fork(): Promise<void> {
    const id = await this.#host.forkSession(this.#session.id);
    this.#out.note(`Stored as ${id}. Continue it with: skillhost chat --resume ${id}`);
  }

  #list(lines: readonly string[], none: string): void {
    for (const line of lines.length === 0 ? [none] : lines) this.#out.note(line);
  }
}

function shown(text: string): string {
  return visibleLine(shorten(text.trim().replaceAll(/\s+/g, " "), 100));
}

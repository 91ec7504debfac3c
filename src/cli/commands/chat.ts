import { resolve } from "node:path";
import { errorMessage, toError } from "../../base/errors.ts";
import { counted } from "../../base/text.ts";
import { onAbort } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import { changeLines, faultyFolders } from "../change-lines.ts";
import { ChatHistory } from "../chat-history.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { didYouMean } from "../did-you-mean.ts";
import { formatOf, writeExport } from "../export-session.ts";
import type { LineReader } from "../line-reader.ts";
import { withHost } from "../open-host.ts";
import { chooseAgent } from "../project-agents.ts";
import { type PromptCommandOptions, toSessionOptions } from "../prompt-session.ts";
import { followTodos, todoLines } from "../show-todos.ts";
import { resumeStored } from "../stored-sessions.ts";
import { visibleLine, visibleText } from "../terminal-style.ts";
import { createTurnReport } from "../turn-report.ts";

export interface ChatCommandOptions extends PromptCommandOptions {
  /** The session to continue: its id, or the beginning of it. `true`: the newest. */
  readonly resume?: string | true;
}

/**
 * A conversation with a model, a line of the input each turn. Skills that are saved meanwhile count from the next call on. The exit code is 1
 * when the last turn failed.
 */
export async function chat(given: CommandContext, options: ChatCommandOptions): Promise<number> {
  const { io, out } = given;
  if (io.openLines === undefined) throw usageError("This program cannot read lines from its standard input.");
  const chosen = options.agent === undefined ? undefined : chooseAgent(given, options.agent);
  using lines = io.openLines();
  // Questions during a turn are answered from the same lines.
  const context: CommandContext = {
    ...given,
    io: { ...io, ask: async (question, signal) => (await lines.question(question, signal)) ?? "" },
  };
  const sessionOptions = toSessionOptions(options, context, chosen);
  for (const diagnostic of chosen?.diagnostics ?? []) if (diagnostic.severity !== "info" && !out.isJson) out.complainOf(diagnostic);
  // Awaited, because the lines are closed at the end.
  return await withHost(context, { workspace: true, watch: true }, async (host) => {
    const session =
      options.resume === undefined
        ? await host.createSession({ ...sessionOptions, fileChangeTracking: true })
        : await resumeStored(host, options.resume, sessionOptions);
    const conversation = new Conversation(context, host, session, lines);
    conversation.start(options.save);
    return conversation.run();
  });
}

class Conversation {
  readonly #context: CommandContext;
  readonly #host: Host;
  readonly #session: Session;
  readonly #lines: LineReader;
  readonly #stop = new AbortController();
  #isBusy = false;
  /** A message that is sent before the turn is over would be dropped with it. */
  #aborted: Promise<void> = Promise.resolve();

  constructor(context: CommandContext, host: Host, session: Session, lines: LineReader) {
    this.#context = context;
    this.#host = host;
    this.#session = session;
    this.#lines = lines;
  }

  start(isSaved: boolean): void {
    const { out } = this.#context;
    const session = this.#session;
    if (out.isJson) session.on((event) => out.json(event));
    out.note(
      `${counted(session.listTools().length, "tool")}, session ${session.id}${isSaved ? "" : ", not stored"}. /help lists commands; Ctrl-D ends.`,
    );
    let faulty = faultyFolders(this.#host.skills);
    this.#host.on("skills.changed", (change) => {
      const wasFaulty = faulty;
      faulty = faultyFolders(this.#host.skills);
      for (const line of changeLines(change, { fresh: [], wasFaulty, isFaulty: faulty }, out, new Date())) out.note(line);
    });
  }

  async run(): Promise<number> {
    const { io } = this.#context;
    using _todos = followTodos(this.#session, this.#context.out);
    using _interrupt = io.onInterrupt?.(() => this.#interrupt());
    using _end = onAbort(io.signal, () => this.#stop.abort(io.signal.reason));
    let code = 0;
    for (;;) {
      const line = await this.#next();
      if (line === undefined || /^\/(?:exit|quit)$/.test(line)) return code;
      if (line !== "") code = await this.#answer(line);
    }
  }

  /** Undefined: the conversation is over. */
  async #next(): Promise<string | undefined> {
    const { io } = this.#context;
    try {
      return (await this.#lines.question(io.stdin.isTTY ? "> " : "", this.#stop.signal))?.trim();
    } catch (error) {
      if (this.#stop.signal.aborted) return undefined;
      throw error;
    }
  }

  /** Ctrl-C ends the turn, and between turns the conversation. */
  #interrupt(): void {
    if (this.#isBusy) this.#aborted = this.#session.abort();
    else this.#stop.abort(new Error("Stopped by SIGINT."));
  }

  async #answer(line: string): Promise<number> {
    const { out } = this.#context;
    try {
      const [, name, words = ""] = /^\/(\S+)\s*(.*)$/s.exec(line) ?? [];
      if (name !== undefined && (await this.#command(name, words))) return 0;
      return await this.#turn(line);
    } catch (error) {
      if (this.#stop.signal.aborted) throw new CliError("STOPPED", toError(this.#stop.signal.reason).message, 1);
      out.complain(visibleText(errorMessage(error)));
      return 1;
    }
  }

  async #turn(prompt: string): Promise<number> {
    const { io, out } = this.#context;
    const report = createTurnReport(io, out);
    const subscription = this.#session.on((event) => report.onEvent(event));
    using _end = onAbort(this.#stop.signal, () => void this.#session.abort());
    this.#isBusy = true;
    try {
      await this.#session.sendAndWait({ prompt });
    } finally {
      this.#isBusy = false;
      subscription();
      await this.#aborted;
    }
    for (const name of report.unallowed)
      out.note(`"${visibleLine(name)}" was denied: it is not allowed. Allow it with --allow ${visibleLine(name)}.`);
    return report.hitLimit ? 1 : 0;
  }

  /** Whether the line was a command of the conversation; commands of plugins are sent to the session. */
  async #command(name: string, words: string): Promise<boolean> {
    const { out } = this.#context;
    const history = new ChatHistory(this.#host, this.#session, out);
    const commands: Readonly<Record<string, () => Promise<void> | void>> = {
      help: () => this.#help(),
      tools: () => {
        for (const tool of this.#session.listTools()) out.note(`${visibleLine(tool.name)}  ${visibleLine(tool.source.name)}`);
      },
      skills: () => {
        for (const skill of this.#host.skills) out.note(`${visibleLine(skill.name)}  ${skill.state}`);
      },
      todos: async () => {
        const { rows } = await this.#session.readSqlTodos();
        for (const line of rows.length === 0 ? ["The model has no todos."] : todoLines(rows)) out.note(line);
      },
      reload: () => this.#host.reload(),
      rewind: () => history.rewind(words),
      checkpoints: () => history.checkpoints(words),
      fork: () => history.fork(),
      export: () => this.#export(words),
    };
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command !== undefined) {
      await command();
      return true;
    }
    if (this.#session.commands.some((each) => each.name === name)) return false;
    const known = [...Object.keys(commands), "exit", ...this.#session.commands.map((each) => each.name)];
    throw new CliError("COMMAND_UNKNOWN", `There is no command "/${visibleLine(name)}".${didYouMean(name, known)} /help lists them.`, 1);
  }

  #help(): void {
    const { out } = this.#context;
    out.note(
      "/tools  the tools that the model can call\n/skills  the skills\n/todos  what the model has to do (with --todos)\n/reload  load all skills again\n/rewind [<n> [files]]  list your messages, or take one back with what followed it, and restore files\n/checkpoints [<n>]  list the summaries of the conversation, or show one\n/fork  store a copy of the session\n/export <file>  write the session to a .md or .jsonl file\n/exit  end (also Ctrl-D)",
    );
    for (const { name, description } of this.#session.commands) out.note(`/${visibleLine(name)}  ${visibleLine(description ?? "")}`);
    out.note("Ctrl-C ends the model's turn, and between turns the conversation.");
  }

  async #export(words: string): Promise<void> {
    const { io, out } = this.#context;
    if (words === "") throw usageError("/export needs a file name, such as session.md.");
    const file = resolve(io.cwd, words);
    await writeExport(file, await this.#host.exportSession(this.#session.id, { format: formatOf(file) }));
    out.note(`Written to ${out.path(file)}.`);
  }
}

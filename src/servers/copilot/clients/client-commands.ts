import { randomUUID } from "node:crypto";
import { onAbort } from "../../../base/wait.ts";
import type { Session } from "../../../session/session.ts";
import type { Client } from "./client.ts";

export interface CommandDeclaration {
  readonly name: string;
  readonly description: string;
}

/** The error of a client's command. Undefined: it succeeded. */
type CommandError = string | undefined;

interface Pending {
  readonly client: Client;
  readonly settle: (error: CommandError) => void;
}

/** The commands that a session's clients provide. An event announces each run to all clients, and the provider answers. */
export class ClientCommands {
  readonly #session: Session;
  readonly #byClient = new Map<Client, readonly CommandDeclaration[]>();
  readonly #pending = new Map<string, Pending>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Commands by name. When two clients provide the same name, the earlier client has it. */
  get all(): ReadonlyMap<string, CommandDeclaration> {
    const commands = new Map<string, CommandDeclaration>();
    for (const command of [...this.#byClient.values()].flat()) if (!commands.has(command.name)) commands.set(command.name, command);
    return commands;
  }

  set(client: Client, commands: readonly CommandDeclaration[]): void {
    const before = this.#byClient.get(client) ?? [];
    if (commands.length > 0) this.#byClient.set(client, commands);
    else this.#byClient.delete(client);
    if (JSON.stringify(before) !== JSON.stringify(commands)) this.#emitChanged();
  }

  remove(client: Client): void {
    if (this.#byClient.delete(client) && this.#session.isOpen) this.#emitChanged();
    for (const [id, { client: owner }] of this.#pending)
      if (owner === client) this.settle(id, client, "The client that provides this command has disconnected.");
  }

  /** The client command that a message such as `/deploy staging` runs. Undefined: the message runs none. */
  find(prompt: string): { readonly name: string; readonly args: string } | undefined {
    const [, name = "", args = ""] = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(prompt.trim()) ?? [];
    return this.#ownerOf(name) === undefined ? undefined : { name, args: args.trim() };
  }

  /** Has the client that provides a command run it. */
  run(name: string, args: string): Promise<CommandError> {
    const client = this.#ownerOf(name);
    if (client === undefined) return Promise.resolve(`Unknown command: ${name}`);
    const requestId = randomUUID();
    return new Promise((settle) => {
      this.#pending.set(requestId, { client, settle });
      const command = args === "" ? `/${name}` : `/${name} ${args}`;
      this.#session.events.append("command.execute", { requestId, commandName: name, command, args });
    });
  }

  /** Takes the answer of a client. Every client answers, but only the answer of the provider counts. */
  settle(requestId: string, client: Client, error: CommandError): boolean {
    const pending = this.#pending.get(requestId);
    if (pending?.client !== client) return false;
    this.#pending.delete(requestId);
    pending.settle(error);
    if (this.#session.isOpen) this.#session.events.append("command.completed", { requestId });
    return true;
  }

  close(): void {
    for (const { settle } of this.#pending.values()) settle("The session has ended.");
    this.#pending.clear();
    this.#byClient.clear();
  }

  #ownerOf(name: string): Client | undefined {
    return [...this.#byClient].find(([, commands]) => commands.some((command) => command.name === name))?.[0];
  }

  #emitChanged(): void {
    this.#session.events.append("commands.changed", { commands: [...this.all.values()] });
  }
}

/** How a client handled a queued command. */
interface QueuedCommandResult {
  readonly handled: boolean;
  /** Whether the commands after it wait for the next request. */
  readonly stopProcessingQueue: boolean;
}

const unhandled: QueuedCommandResult = { handled: false, stopProcessingQueue: false };

/** Queued commands that are due. An event announces each to the clients with an interest in them, and one of them answers. */
export class QueuedCommands {
  readonly #session: Session;
  readonly #pending = new Map<string, (result: QueuedCommandResult) => void>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Settles with the first answer, or as not handled when no interested client is left or the signal fires. */
  offer(command: string, signal: AbortSignal): Promise<QueuedCommandResult> {
    const requestId = randomUUID();
    return new Promise((resolve) => {
      const settle = (result: QueuedCommandResult): void => {
        if (!this.#pending.delete(requestId)) return;
        listening[Symbol.dispose]();
        if (this.#session.isOpen) this.#session.events.append("command.completed", { requestId });
        resolve(result);
      };
      this.#pending.set(requestId, settle);
      const listening = onAbort(signal, () => queueMicrotask(() => settle(unhandled)));
      this.#session.events.append("command.queued", { requestId, command });
    });
  }

  /** False: the command is no longer pending. */
  answer(requestId: string, result: QueuedCommandResult): boolean {
    const settle = this.#pending.get(requestId);
    settle?.(result);
    return settle !== undefined;
  }

  /** Settles all pending commands as not handled. */
  release(): void {
    for (const settle of [...this.#pending.values()]) settle(unhandled);
  }
}

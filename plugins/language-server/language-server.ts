import { type Diagnostic, HostError, Lifetime, type PluginApi, type Session } from "skillhost";
import type { AgentTurn } from "./agent-turn.ts";
import { defaultModel, RunningTurns, type SendOptions, skillContext } from "./conversation.ts";
import { Documents } from "./documents.ts";
import type { LanguageServerOptions } from "./options.ts";
import type { ToolStatus } from "./registrar.ts";
import { RunningServer, type ServerParts } from "./running-server.ts";
import { permitServerTool } from "./server-permissions.ts";
import { assertSignedIn, readStatus, type SignInStatus } from "./sign-in.ts";
import type { RegisteredTool } from "./wire.ts";

export interface LanguageServerParts {
  readonly api: PluginApi<LanguageServerOptions>;
  readonly session: Session;
  readonly options: LanguageServerOptions;
  onClosed(): void;
}

/**
 * A Copilot language server that uses the tools of a session. Added, changed and removed tools are sent to it, and each of
 * its calls goes through the session with its hooks and permissions. When the server exits by itself, pending requests are
 * rejected and the next message starts it again. Dispose of it to end the server.
 */
export class LanguageServer implements AsyncDisposable {
  readonly #api: LanguageServerParts["api"];
  readonly #onClosed: () => void;
  readonly #session: Session;
  readonly #options: LanguageServerOptions;
  readonly #documents: Documents;
  readonly #statuses = new Map<string, ToolStatus>();
  readonly #turns = new RunningTurns();
  readonly #listening: Disposable[] = [];
  readonly #life = new Lifetime(() => new HostError("LANGUAGE_SERVER_CLOSED", "This language server is closed. Connect a new one."));
  #server: RunningServer | undefined;
  #starting: Promise<RunningServer> | undefined;
  #closed: Promise<void> | undefined;

  /** @internal Created by the plugin. */
  constructor({ api, session, options, onClosed }: LanguageServerParts) {
    this.#api = api;
    this.#onClosed = onClosed;
    this.#session = session;
    this.#options = options;
    this.#documents = new Documents(session.config.workingDirectory, (method, params) => this.#server?.rpc.notify(method, params));
    this.#listening.push(
      session.onChanged(
        () =>
          void this.synchronize().catch((error: unknown) =>
            api.log.debug("The tools could not be sent to the language server.", { error }),
          ),
      ),
      session.onFileChanged((change) => {
        this.#documents.sync(change.path, change.content, change.languageId);
        this.#server?.toolCalls.noteWritten(change);
      }),
    );
  }

  /** `stopped`: the next message starts it again. */
  get state(): "running" | "stopped" | "closed" {
    if (this.#closed !== undefined) return "closed";
    return this.#server === undefined ? "stopped" : "running";
  }

  /** The version of the server. Empty while it is not running. */
  get version(): string {
    return this.#server?.version ?? "";
  }

  get pid(): number | undefined {
    return this.#server?.pid;
  }

  /** The tools that the server offers its models: its own and those of the session. */
  get tools(): readonly RegisteredTool[] {
    return this.#server?.registrar.listed ?? [];
  }

  /** Why tools are not offered to the server, and which schemas were changed for it. */
  get diagnostics(): readonly Diagnostic[] {
    return this.#server?.registrar.diagnostics ?? [];
  }

  /** Starts the server unless it is running. Settles when it knows the tools of the session. */
  async start(): Promise<void> {
    await this.#running();
  }

  /** Settles when the server knows the current tools of the session. */
  async synchronize(): Promise<void> {
    await this.#server?.registrar.sync();
  }

  async checkStatus(): Promise<SignInStatus> {
    const { rpc } = await this.#running();
    return readStatus(await rpc.request("checkStatus", {}));
  }

  /**
   * Sends a message and settles when the whole turn is over. A failed turn resolves, too, with its `error`.
   * @throws HostError `LANGUAGE_SERVER_SIGN_IN`, `LANGUAGE_SERVER_NO_MODEL`, `LANGUAGE_SERVER_REFUSED`,
   * `LANGUAGE_SERVER_EXITED`, and the others of `start`; the signal's reason if it was aborted before.
   */
  async send(prompt: string, options: SendOptions = {}): Promise<AgentTurn> {
    const { signal } = options;
    signal?.throwIfAborted();
    const server = await this.#running();
    assertSignedIn(await this.checkStatus());
    await Promise.all([server.registrar.sync(), this.#documents.refresh()]);
    const model = options.model ?? this.#options.model ?? (await defaultModel(server));
    signal?.throwIfAborted();
    const place = { server, model, folder: this.#session.config.workingDirectory, context: skillContext(this.#session) };
    return this.#turns.run(prompt, place, options);
  }

  /** Deletes a conversation. */
  async forget(conversationId: string): Promise<void> {
    await this.#server?.rpc.request("conversation/destroy", { conversationId });
  }

  /** Disables and enables tools, including those of the server. A disabled tool is neither offered nor called. */
  async setToolStatus(statuses: Readonly<Record<string, ToolStatus>>): Promise<void> {
    const { registrar } = await this.#running();
    await registrar.setStatuses(statuses);
  }

  /** Opens a document on the server or replaces the text of an open one, independent of the disk. */
  openDocument(uri: string, languageId: string, text: string): void {
    this.#documents.open(uri, languageId, text);
  }

  /** Sends the current content of a file to the server. Writes of the session's tools are sent automatically. */
  syncFile(path: string, content: string): void {
    this.#documents.sync(path, content);
  }

  /** The server reads this document from the disk again. */
  closeDocument(uri: string): void {
    this.#documents.close(uri);
  }

  /** Ends the server and starts a new one, which receives tools and documents again. */
  async restart(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await server?.[Symbol.asyncDispose]();
    await this.#running();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Concurrent first uses share one start. After a failed start the next use tries again. */
  async #running(): Promise<RunningServer> {
    this.#life.assertOpen();
    if (this.#server !== undefined) return this.#server;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #start(): Promise<RunningServer> {
    const server = await this.#life.open((signal) => this.#launch(signal), end);
    try {
      await this.#introduce(server);
    } catch (error) {
      await end(server);
      throw error;
    }
    return server;
  }

  #launch(closing: AbortSignal): Promise<RunningServer> {
    const place: ServerParts = {
      api: this.#api,
      session: this.#session,
      options: this.#options,
      statuses: this.#statuses,
      permit: (asked, signal) => permitServerTool(this.#session, asked, signal),
      onTurnOver: (conversationId) => this.#turns.endAfter(conversationId),
      progressed: (token, value) => this.#turns.hear(token, value),
    };
    return RunningServer.start(place, closing);
  }

  /** Sends documents and tools to a server. From then on it is the current one. */
  async #introduce(server: RunningServer): Promise<void> {
    void server.ended.then(() => {
      if (this.#server === server) this.#server = undefined;
    });
    this.#documents.moveTo((method, params) => server.rpc.notify(method, params));
    await server.registrar.sync();
    this.#life.assertOpen();
    this.#server = server;
  }

  async #close(): Promise<void> {
    for (const listening of this.#listening) listening[Symbol.dispose]();
    this.#turns.stop();
    await this.#life.end();
    const server = this.#server;
    this.#server = undefined;
    await server?.[Symbol.asyncDispose]();
    // A server that is still being introduced is ended by its start.
    await this.#starting?.catch(() => {});
    this.#onClosed();
  }
}

async function end(server: RunningServer): Promise<void> {
  await server[Symbol.asyncDispose]();
}

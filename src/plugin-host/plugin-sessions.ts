import { toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { PermissionRules } from "../session/permissions/permission-rules.ts";

/** What plugins are told of a session that is open. */
export interface PluginSession {
  readonly id: string;
  readonly workingDirectory: string;
  /** Folders that its tools may work in beside the working directory. Absolute. */
  readonly additionalDirectories: readonly string[];
  /** Folders whose files its model is told to read: where long results are kept, and those of its skills. Absolute. */
  readonly readableDirectories: readonly string[];
  /**
   * Whether its rules forbid reading what is at an absolute path, or want somebody asked for that: a tool that searches
   * the folder it lies in passes it over, as permission for the folder says nothing of it. Undefined: there are no such rules.
   */
  readonly isKeptBack: ((path: string) => boolean) | undefined;
  /**
   * What a command line is to be kept from so that its rules hold, whatever it does; "unenforceable": no limits can see to
   * that. A request for permission whose line will run so says `isConfined: true`: then rules decide only by what is sure.
   * Undefined: there are no rules about paths or addresses.
   */
  readonly limitsOf: PermissionRules["limitsOf"];
  /** Whether its rules forbid an address, or want somebody asked. Undefined: there are no such rules. */
  readonly isAddressKeptBack: PermissionRules["isAddressKeptBack"];
}

type ClosedListener = (sessionId: string) => void | Promise<void>;

/** The sessions of a host, as plugins see them. */
export class PluginSessions {
  readonly #log: Logger;
  readonly #open = new Map<string, PluginSession>();
  readonly #listeners = new Set<ClosedListener>();

  constructor(log: Logger) {
    this.#log = log;
  }

  find(id: string): PluginSession | undefined {
    return this.#open.get(id);
  }

  /** Also when something about an open one has changed. */
  open(session: PluginSession): void {
    this.#open.set(session.id, session);
  }

  close(id: string): void {
    if (!this.#open.delete(id)) return;
    for (const listener of [...this.#listeners]) void this.#tell(listener, id);
  }

  onClosed(listener: ClosedListener): Disposable {
    // A function of our own, so that adding one twice gives two subscriptions with a life each.
    const own: ClosedListener = (id) => listener(id);
    this.#listeners.add(own);
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }

  async #tell(listener: ClosedListener, id: string): Promise<void> {
    try {
      await listener(id);
    } catch (error) {
      this.#log.error("A plugin failed in its session-closed listener.", { sessionId: id, error: toError(error) });
    }
  }
}

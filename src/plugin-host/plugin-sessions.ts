import { toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { PermissionRules } from "../session/permissions/permission-rules.ts";

/** An open session, as plugins see it. */
export interface PluginSession {
  readonly id: string;
  readonly workingDirectory: string;
  /** Absolute paths of the folders in which its tools may work besides the working directory. */
  readonly additionalDirectories: readonly string[];
  /** Absolute paths of folders that its model may read: stored long results, and its skills. */
  readonly readableDirectories: readonly string[];
  /**
   * Whether its rules deny reading an absolute path, or require permission for it. A tool that searches the folder must skip this
   * path, since permission for the folder does not cover it. Undefined: there are no such rules.
   */
  readonly isKeptBack: ((path: string) => boolean) | undefined;
  /**
   * The limits with which a command line cannot break the rules, whatever it does; "unenforceable": no limits can ensure this. A
   * permission request for a line that runs with them has `isConfined: true`, and rules then decide only by what is certain.
   * Undefined: there are no rules about paths or addresses.
   */
  readonly limitsOf: PermissionRules["limitsOf"];
  /** Whether its rules deny an address, or require permission for it. Undefined: there are no such rules. */
  readonly isAddressKeptBack: PermissionRules["isAddressKeptBack"];
}

type ClosedListener = (sessionId: string) => void | Promise<void>;

/** The open sessions of a host, for its plugins. */
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

  /** Adds a session, or replaces the description of an open one. */
  open(session: PluginSession): void {
    this.#open.set(session.id, session);
  }

  close(id: string): void {
    if (!this.#open.delete(id)) return;
    for (const listener of [...this.#listeners]) void this.#notify(listener, id);
  }

  onClosed(listener: ClosedListener): Disposable {
    // Wrapped, so that adding the same function twice creates two independent subscriptions.
    const own: ClosedListener = (id) => listener(id);
    this.#listeners.add(own);
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }

  async #notify(listener: ClosedListener, id: string): Promise<void> {
    try {
      await listener(id);
    } catch (error) {
      this.#log.error("A plugin failed in its session-closed listener.", { sessionId: id, error: toError(error) });
    }
  }
}

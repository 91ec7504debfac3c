import type { Session } from "../../../session/session.ts";

/**
 * What clients of the Copilot SDK hear of beside what a session tells itself: a title, which is the first thing that was
 * said unless somebody named the session, that agents began or ended, and, when a client opens it, who governs it: nobody.
 */
export class WireNews implements Disposable {
  readonly #session: Session;
  readonly #subscriptions: readonly Disposable[];
  #hasTitle = false;

  constructor(session: Session, isNamed: () => boolean) {
    this.#session = session;
    const { events } = session;
    this.#subscriptions = [
      events.addSink(({ data, agentId }) => {
        if (agentId !== undefined || data["source"] !== undefined || this.#hasTitle) return;
        this.#hasTitle = true;
        if (!isNamed()) events.append("session.title_changed", { title: data["content"] });
      }, "user.message"),
      ...agentTypes.map((type) => events.addSink(() => events.append("session.background_tasks_changed", {}), type)),
    ];
  }

  tellOpened(): void {
    this.#session.events.append("session.managed_settings_resolved", ungoverned);
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
  }
}

const agentTypes = ["subagent.started", "subagent.completed", "subagent.failed"] as const;

/** No organization's settings reach this machine through skillhost. */
const ungoverned = {
  source: "none",
  serverManaged: false,
  deviceManaged: false,
  clientManaged: false,
  failClosed: false,
  bypassPermissionsDisabled: false,
  managedKeys: [],
} as const;

import type { ToolSource } from "../../tools/tool-source.ts";
import { type ApprovalStore, createMemoryApprovals } from "../../trust/approvals.ts";
import type { PinPolicy } from "../../trust/pins/pins.ts";
import type { ServerLease } from "../supervisor/lease.ts";
import type { HeldDefinition } from "./held-definition.ts";
import type { FoundSkill } from "./server-offer.ts";
import type { ServerViewSnapshot } from "./server-snapshot.ts";
import { SharedView } from "./shared-view.ts";

export interface ServerViewOptions {
  /** Keeps what is trusted. Default: in memory. */
  readonly approvals?: ApprovalStore | undefined;
  /** Default: `first-use`. */
  readonly pins?: PinPolicy | undefined;
  /** What to do to have something back, for the message about it. */
  readonly howToApprove?: ((held: HeldDefinition) => string) | undefined;
  /** Hears of what could not be kept, and of listeners that throw. */
  readonly onError?: ((error: Error) => void) | undefined;
}

/**
 * The tools, prompts, resources, skills and instructions of a set of servers, named for one catalog, filtered and pinned.
 * All of it is decided when a server's lists change, so a call only calls.
 */
export interface ServerView extends ToolSource {
  readonly snapshot: ServerViewSnapshot;
  /** Settles when what the servers have told by now is in the snapshot. It starts no server. */
  ready(signal: AbortSignal): Promise<void>;
  /**
   * Accepts what is held back of a server: all of it, what has this name, or one of the snapshot's `held`, and that only
   * as long as it is still the same. Settles with their number when the snapshot offers them.
   * @throws HostError `MCP_SERVER_UNKNOWN`, and `MCP_CHANGED_AGAIN` when something else is held by now.
   */
  approve(server: string, what?: string | HeldDefinition): Promise<number>;
  /**
   * A skill of a server by the address of its SKILL.md, listed or not (Skills extension, SEP-2640); or what is to be
   * approved before it may be used.
   * @throws HostError `MCP_SERVER_UNKNOWN`, `MCP_ANSWER` for what is no skill, `MCP_SKILL_DYNAMIC` for one that cannot be
   * pinned, and what requests throw.
   */
  findSkill(server: string, uri: string, options?: { readonly signal?: AbortSignal }): Promise<FoundSkill>;
}

/**
 * Opens the view of a lease's servers. Views of one lease with the same approvals and pins share their snapshots. The
 * lease stays its owner's, who disposes of the views before it.
 */
export function createServerView(lease: ServerLease, options: ServerViewOptions = {}): ServerView {
  const cores = coresOf.get(lease) ?? new Set<SharedView>();
  coresOf.set(lease, cores);
  const approvals = options.approvals ?? ownApprovals;
  const policy = options.pins ?? "first-use";
  const shared = [...cores].find((core) => core.approvals === approvals && core.policy === policy);
  const { howToApprove, onError = () => {} } = options;
  const core = shared ?? new SharedView(lease, { approvals, policy, howToApprove, onError });
  cores.add(core);
  return new OpenView(
    core,
    core.use(() => cores.delete(core)),
  );
}

const coresOf = new WeakMap<ServerLease, Set<SharedView>>();

// One for all who bring none: what was seen first stays seen for as long as the program runs.
const ownApprovals: ApprovalStore = createMemoryApprovals();

/** One user's hold on a view that others may share. */
class OpenView implements ServerView {
  readonly id: string = "mcp";
  readonly #core: SharedView;
  readonly #hears = new Set<Disposable>();
  #release: (() => Promise<void>) | undefined;

  constructor(core: SharedView, release: () => Promise<void>) {
    this.#core = core;
    this.#release = release;
  }

  get snapshot(): ServerViewSnapshot {
    return this.#core.snapshot;
  }

  ready(signal: AbortSignal): Promise<void> {
    return this.#core.ready(signal);
  }

  subscribe(listener: () => void): Disposable {
    const hears = this.#core.subscribe(listener);
    this.#hears.add(hears);
    return {
      [Symbol.dispose]: () => {
        this.#hears.delete(hears);
        hears[Symbol.dispose]();
      },
    };
  }

  approve(server: string, what?: string | HeldDefinition): Promise<number> {
    return this.#core.approve(server, what);
  }

  findSkill(server: string, uri: string, options: { readonly signal?: AbortSignal } = {}): Promise<FoundSkill> {
    return this.#core.findSkill(server, uri, options.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hears of this.#hears) hears[Symbol.dispose]();
    this.#hears.clear();
    const release = this.#release;
    this.#release = undefined;
    await release?.();
  }
}

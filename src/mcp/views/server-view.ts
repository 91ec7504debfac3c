import { Emitter } from "../../base/emitter.ts";
import { HostError } from "../../base/errors.ts";
import { KeyedQueue } from "../../base/keyed-queue.ts";
import { waitFor } from "../../base/wait-for.ts";
import type { ToolSource } from "../../tools/tool-source.ts";
import { type ApprovalStore, createMemoryApprovals } from "../../trust/approvals.ts";
import { type PinPolicy, Pins } from "../../trust/pins/pins.ts";
import type { ServerLease, SupervisedServer } from "../supervisor/server-lease.ts";
import { type HeldDefinition, pinOwner } from "./held-definition.ts";
import { nameTools } from "./name-tools.ts";
import { type FoundSkill, type OwnNames, ServerFeaturesBuilder } from "./server-features.ts";
import { nameSkills } from "./server-skills.ts";
import { emptySnapshot, type ServerViewSnapshot, snapshotOf } from "./server-snapshot.ts";

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

interface SharedViewOptions {
  readonly approvals: ApprovalStore;
  readonly policy: PinPolicy;
  readonly howToApprove: ((held: HeldDefinition) => string) | undefined;
  readonly onError: (error: Error) => void;
}

/** What all views of one lease share that have the same approvals and pins. */
class SharedView {
  readonly approvals: ApprovalStore;
  readonly policy: PinPolicy;
  readonly #lease: ServerLease;
  readonly #pins: Pins;
  readonly #queue: KeyedQueue;
  readonly #events: Emitter<{ changed: undefined }>;
  readonly #howToApprove: (held: HeldDefinition) => string;
  readonly #onError: (error: Error) => void;
  readonly #hears: readonly Disposable[];
  #builders = new Map<SupervisedServer, ServerFeaturesBuilder>();
  #names: NamesOfSet | undefined;
  #round = 0;
  #users = 0;
  #isOver = false;
  #snapshot: ServerViewSnapshot = emptySnapshot;

  constructor(lease: ServerLease, { approvals, policy, howToApprove, onError }: SharedViewOptions) {
    this.approvals = approvals;
    this.policy = policy;
    this.#lease = lease;
    this.#pins = new Pins({ approvals, policy, onError });
    this.#queue = new KeyedQueue(onError);
    this.#events = new Emitter(onError);
    this.#howToApprove = howToApprove ?? defaultHowTo;
    this.#onError = onError;
    this.#hears = [lease.subscribe(() => this.#refresh()), this.#pins.subscribe(() => this.#judgeAgain())];
    this.#refresh();
  }

  get snapshot(): ServerViewSnapshot {
    return this.#snapshot;
  }

  /** One more user, who calls what is given back when it is none any more; `onLast`: there is none left. */
  use(onLast: () => void): () => Promise<void> {
    this.#users++;
    return () => this.#release(onLast);
  }

  subscribe(listener: () => void): Disposable {
    return this.#events.on("changed", listener);
  }

  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await waitFor(this.#queue.idle(), { signal });
  }

  async approve(serverName: string, what: string | HeldDefinition | undefined): Promise<number> {
    const server = this.#serverCalled(serverName);
    const held = this.#snapshot.held.filter((one) => one.server === serverName);
    const named = typeof what === "object" ? [asShown(what, held)] : held.filter(({ name }) => what === undefined || name === what);
    if ("reason" in server.spec || named.length === 0) return 0;
    const owner = pinOwner(server);
    await this.#pins.approve(named.map(({ kind, name, digest, after }) => ({ kind: `mcp-${kind}`, owner, name, digest, content: after })));
    await this.#queue.idle();
    return named.length;
  }

  async findSkill(serverName: string, uri: string, signal: AbortSignal | undefined): Promise<FoundSkill> {
    return this.#builderOf(this.#serverCalled(serverName)).findSkill(uri, signal);
  }

  async #release(onLast: () => void): Promise<void> {
    if (--this.#users > 0) return;
    this.#isOver = true;
    onLast();
    for (const hears of this.#hears) hears[Symbol.dispose]();
    this.#events.clear();
    await this.#queue.close();
    await this.#pins.kept();
  }

  #refresh(): void {
    if (this.#isOver) return;
    this.#queue.add("refresh", () => this.#build());
  }

  #judgeAgain(): void {
    this.#round++;
    this.#refresh();
  }

  async #build(): Promise<void> {
    const { servers } = this.#lease;
    this.#builders = new Map(servers.map((server) => [server, this.#builderOf(server)]));
    const names = this.#nameAll(servers);
    const round = this.#round;
    const offers = await Promise.all(servers.map((server, index) => this.#builderOf(server).build(names[index]!, round)));
    const before = this.#snapshot;
    this.#snapshot = snapshotOf(offers, before);
    if (this.#snapshot !== before) this.#events.emit("changed", undefined);
  }

  #builderOf(server: SupervisedServer): ServerFeaturesBuilder {
    const known = this.#builders.get(server);
    if (known !== undefined) return known;
    const builder = new ServerFeaturesBuilder(server, {
      pins: this.#pins,
      howToApprove: this.#howToApprove,
      onChanged: () => this.#judgeAgain(),
      onError: this.#onError,
    });
    this.#builders.set(server, builder);
    return builder;
  }

  /** The same objects until a list changes: a name depends on nothing else. */
  #nameAll(servers: readonly SupervisedServer[]): readonly OwnNames[] {
    const facts = [this.#round, ...servers.flatMap((server) => [server, server.lists])];
    if (this.#names?.facts.every((fact, index) => fact === facts[index]) && this.#names.facts.length === facts.length)
      return this.#names.names;
    const named = servers.map((server) => this.#builderOf(server).named());
    const tools = nameTools(named);
    const skills = nameSkills(named);
    const names = named.map(({ name }) => ({
      tools: tools.names.get(name)!,
      skills: skills.get(name)!,
      diagnostics: tools.diagnostics.filter(({ source }) => source === name),
    }));
    this.#names = { facts, names };
    return names;
  }

  #serverCalled(name: string): SupervisedServer {
    const server = this.#lease.servers.find((one) => one.name === name);
    if (server !== undefined) return server;
    const known = this.#lease.servers.map((one) => JSON.stringify(one.name)).join(", ") || "none";
    throw new HostError("MCP_SERVER_UNKNOWN", `MCP server ${JSON.stringify(name)} does not exist. The servers are: ${known}.`);
  }
}

interface NamesOfSet {
  /** What they depend on. */
  readonly facts: readonly unknown[];
  readonly names: readonly OwnNames[];
}

/** An approval is for what somebody saw. A skill need not be listed to be approved. */
function asShown(shown: HeldDefinition, held: readonly HeldDefinition[]): HeldDefinition {
  const current = held.find(({ kind, name }) => kind === shown.kind && name === shown.name);
  if (current?.digest === shown.digest || (current === undefined && shown.kind === "skill")) return shown;
  throw changedAgain(shown);
}

function defaultHowTo({ server, name }: HeldDefinition): string {
  const what = name === "" ? JSON.stringify(server) : `${JSON.stringify(server)}, ${JSON.stringify(name)}`;
  return `To accept the change, call host.approveServer(${what}).`;
}

function changedAgain({ server, kind, name }: HeldDefinition): HostError {
  const what = name === "" ? kind : `${kind} ${JSON.stringify(name)}`;
  return new HostError("MCP_CHANGED_AGAIN", `The ${what} of MCP server "${server}" has changed since it was shown. Review it again.`);
}

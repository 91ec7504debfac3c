import type { Diagnostic } from "../../base/diagnostic.ts";
import { Emitter } from "../../base/emitter.ts";
import { HostError } from "../../base/errors.ts";
import { KeyedQueue } from "../../base/keyed-queue.ts";
import { waitFor } from "../../base/wait.ts";
import type { SourceSnapshot, ToolSource } from "../../tools/tool-source.ts";
import { type ApprovalStore, createMemoryApprovals } from "../../trust/approvals.ts";
import { type PinPolicy, Pins } from "../../trust/pins/pins.ts";
import type { ServerLease, SupervisedServer } from "../supervisor/server-lease.ts";
import { type HeldDefinition, pinOwner, sameList } from "./held-definition.ts";
import { nameTools } from "./name-tools.ts";
import { type FoundSkill, type OwnNames, type ServerFeatures, ServerFeaturesBuilder } from "./server-features.ts";
import { nameSkills } from "./server-skills.ts";

export interface ServerViewOptions {
  /** Stores what is trusted. Default: in memory. */
  readonly approvals?: ApprovalStore | undefined;
  /** Default: `first-use`. */
  readonly pins?: PinPolicy | undefined;
  /** How to approve a definition, for the message about it. */
  readonly howToApprove?: ((held: HeldDefinition) => string) | undefined;
  /** Receives errors of storing, and of listeners. */
  readonly onError?: ((error: Error) => void) | undefined;
}

// One for all views without a store: what was seen first counts for as long as the program runs.
const ownApprovals: ApprovalStore = createMemoryApprovals();

/**
 * The tools, prompts, resources, skills and instructions of a lease's servers, named for one catalog, filtered and pinned.
 * All of it is decided when a server's lists change, so a call only calls. The lease belongs to the caller, who disposes
 * of the view before it.
 */
export class ServerView implements ToolSource {
  readonly id: string = "mcp";
  readonly #lease: ServerLease;
  readonly #pins: Pins;
  readonly #queue: KeyedQueue;
  readonly #events: Emitter<{ changed: undefined }>;
  readonly #howToApprove: (held: HeldDefinition) => string;
  readonly #onError: (error: Error) => void;
  readonly #subscriptions: readonly Disposable[];
  #builders = new Map<SupervisedServer, ServerFeaturesBuilder>();
  #names: NamesOfSet | undefined;
  #round = 0;
  #isOver = false;
  #snapshot: ServerViewSnapshot = emptySnapshot;

  constructor(lease: ServerLease, options: ServerViewOptions = {}) {
    const { approvals = ownApprovals, pins: policy = "first-use", howToApprove = defaultHowTo, onError = () => {} } = options;
    this.#lease = lease;
    this.#pins = new Pins({ approvals, policy, onError });
    this.#queue = new KeyedQueue(onError);
    this.#events = new Emitter(onError);
    this.#howToApprove = howToApprove;
    this.#onError = onError;
    this.#subscriptions = [lease.subscribe(() => this.#refresh()), this.#pins.subscribe(() => this.#judgeAgain())];
    this.#refresh();
  }

  get snapshot(): ServerViewSnapshot {
    return this.#snapshot;
  }

  subscribe(listener: () => void): Disposable {
    return this.#events.on("changed", listener);
  }

  /** Resolves when the snapshot contains everything that the servers have sent so far. Starts no server. */
  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await waitFor(this.#queue.idle(), { signal });
  }

  /**
   * Accepts what is held back of a server: all of it, everything with this name, or one of the snapshot's `held`, and that
   * only while it is still the same. Resolves with their number once the snapshot offers them.
   * @throws HostError `MCP_SERVER_UNKNOWN`, and `MCP_CHANGED_AGAIN` when another definition is held by now.
   */
  async approve(serverName: string, what?: string | HeldDefinition): Promise<number> {
    const server = this.#serverCalled(serverName);
    const held = this.#snapshot.held.filter((one) => one.server === serverName);
    const named = typeof what === "object" ? [asShown(what, held)] : held.filter(({ name }) => what === undefined || name === what);
    if ("reason" in server.spec || named.length === 0) return 0;
    const owner = pinOwner(server);
    await this.#pins.approve(named.map(({ kind, name, digest, after }) => ({ kind: `mcp-${kind}`, owner, name, digest, content: after })));
    await this.#queue.idle();
    return named.length;
  }

  /**
   * A skill of a server by the address of its SKILL.md, listed or not (Skills extension, SEP-2640); or what must be
   * approved before it may be used.
   * @throws HostError `MCP_SERVER_UNKNOWN`, `MCP_ANSWER` for what is not a skill, `MCP_SKILL_DYNAMIC` for one that cannot be
   * pinned, and what requests throw.
   */
  async findSkill(serverName: string, uri: string, options: { readonly signal?: AbortSignal } = {}): Promise<FoundSkill> {
    return this.#builderOf(this.#serverCalled(serverName)).findSkill(uri, options.signal);
  }

  /** Resolves when the definitions that were seen are stored. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
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

/** An approval is for what the user saw. A skill need not be listed to be approved. */
function asShown(shown: HeldDefinition, held: readonly HeldDefinition[]): HeldDefinition {
  const current = held.find(({ kind, name }) => kind === shown.kind && name === shown.name);
  if (current?.digest === shown.digest || (current === undefined && shown.kind === "skill")) return shown;
  const { server, kind, name } = shown;
  const what = name === "" ? kind : `${kind} ${JSON.stringify(name)}`;
  throw new HostError("MCP_CHANGED_AGAIN", `The ${what} of MCP server "${server}" has changed since it was shown. Review it again.`);
}

function defaultHowTo({ server, name }: HeldDefinition): string {
  const what = name === "" ? JSON.stringify(server) : `${JSON.stringify(server)}, ${JSON.stringify(name)}`;
  return `To accept the change, call host.approveServer(${what}).`;
}

/** What connected servers say about their use, for the system message. */
interface StatedInstructions {
  readonly server: string;
  readonly text: string;
}

/** What a set of servers offers. Each list, and the whole, is the same object until something in it changes. */
export interface ServerViewSnapshot extends Required<SourceSnapshot> {
  readonly servers: readonly ServerFeatures[];
  readonly instructions: readonly StatedInstructions[];
  readonly held: readonly HeldDefinition[];
}

const emptySnapshot: ServerViewSnapshot = Object.freeze({
  servers: [],
  tools: [],
  skills: [],
  prompts: [],
  resources: [],
  resourceTemplates: [],
  instructions: [],
  held: [],
  diagnostics: [],
});

/** Combines what servers offer. A list with the same contents as before is the previous object. */
function snapshotOf(servers: readonly ServerFeatures[], before: ServerViewSnapshot): ServerViewSnapshot {
  if (sameList(before.servers, servers) === before.servers) return before;
  const all = <T>(list: (offer: ServerFeatures) => readonly T[], known: readonly T[]): readonly T[] =>
    sameList(known, servers.flatMap(list));
  const instructions = servers.flatMap(({ name: server, instructions: text }) =>
    text === undefined ? [] : [Object.freeze({ server, text })],
  );
  return Object.freeze({
    servers: Object.freeze(servers),
    tools: all((offer) => offer.tools, before.tools),
    skills: all((offer) => offer.skills, before.skills),
    prompts: all((offer) => offer.prompts, before.prompts),
    resources: all((offer) => offer.resources, before.resources),
    resourceTemplates: all((offer) => offer.resourceTemplates, before.resourceTemplates),
    instructions: sameList(before.instructions, instructions, (a, b) => a.server === b.server && a.text === b.text),
    held: all((offer) => offer.held, before.held),
    diagnostics: all<Diagnostic>((offer) => offer.diagnostics, before.diagnostics),
  });
}

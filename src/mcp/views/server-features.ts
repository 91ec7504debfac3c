import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { findHidden, hiddenWords, withoutHidden } from "../../base/untrusted-text.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import { isSameJson } from "../../trust/pins/definition-diff.ts";
import type { Pins, PinVerdict } from "../../trust/pins/pins.ts";
import { type PinSubject, placeOf } from "../../trust/pins/seen-pins.ts";
import type { ServerLists, SupervisedServer } from "../supervisor/server-lease.ts";
import type { ServerState } from "../supervisor/server-state.ts";
import { diagnoseHeld, formerPinOwner, type HeldDefinition, heldDefinition, pinOwner, sameList } from "./held-definition.ts";
import { ServerPromptsAndResources } from "./remote-resource.ts";
import type { SkillListing } from "./remote-skill.ts";
import { canBePinned, diagnoseDynamic, ServerSkills } from "./server-skills.ts";
import { type Pinned, ServerTools, toolNamesOf } from "./server-tools.ts";

/** What one server offers. Immutable; each list is the same object until something in it changes. */
export interface ServerFeatures {
  readonly name: string;
  readonly state: ServerState;
  readonly tools: readonly Tool[];
  readonly skills: readonly SkillEntry[];
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  /** The server's description of its use. Undefined: absent, or held back. */
  readonly instructions: string | undefined;
  /** Definitions that are not offered until they have been approved. */
  readonly held: readonly HeldDefinition[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The names of a server's tools and skills in its set. */
export interface OwnNames {
  /** By the server's own name. */
  readonly tools: ReadonlyMap<string, string>;
  /** By address. */
  readonly skills: ReadonlyMap<string, string>;
  /** Faults of these names. */
  readonly diagnostics: readonly Diagnostic[];
}

/** A skill, or what must be approved before it can be used. */
export type FoundSkill = { readonly skill: SkillEntry } | { readonly held: HeldDefinition };

export interface ServerFeaturesOptions {
  readonly pins: Pins;
  /** Ends the message about what is held back. */
  howToApprove(held: HeldDefinition): string;
  /** Called when what is offered may have changed although no list did. */
  onChanged(): void;
  onError(error: Error): void;
}

/** Builds what one server offers, one version after another. */
export class ServerFeaturesBuilder {
  readonly #server: SupervisedServer;
  readonly #options: ServerFeaturesOptions;
  readonly #tools: ServerTools;
  readonly #skills: ServerSkills;
  readonly #material: ServerPromptsAndResources;
  /** What was trusted at the last successful check. It stays trusted while the approvals cannot be read. */
  #trusted: ReadonlySet<string> = new Set();
  #last: { readonly lists: ServerLists; readonly names: OwnNames; readonly round: number; readonly made: Made } | undefined;
  #offer: ServerFeatures | undefined;
  #hasTakenOver = false;
  #outdated: readonly Diagnostic[] = [];

  constructor(server: SupervisedServer, options: ServerFeaturesOptions) {
    this.#server = server;
    this.#options = options;
    this.#tools = new ServerTools(server);
    this.#skills = new ServerSkills(server, options.onChanged);
    this.#material = new ServerPromptsAndResources(server);
  }

  /** What needs a name in the set. */
  named(): { readonly name: string; readonly tools: readonly string[]; readonly skills: readonly SkillListing[] } {
    const { name, lists } = this.#server;
    return { name, tools: toolNamesOf(lists), skills: this.#skills.listings(lists) };
  }

  /** Returns the same object if nothing has changed. Another round reads again what is trusted. */
  async build(names: OwnNames, round: number): Promise<ServerFeatures> {
    const { name, spec, lists, state } = this.#server;
    const made = lists === undefined || isUnconfigured(spec) ? nothing : await this.#makeIn(round, lists, spec, names);
    const diagnostics = [...diagnoseState(this.#server), ...(lists?.diagnostics ?? []), ...names.diagnostics, ...made.diagnostics];
    this.#offer = sameOffer(this.#offer, { name, state, ...made, diagnostics });
    return this.#offer;
  }

  /** A skill by its address, listed or not. */
  async findSkill(uri: string, signal: AbortSignal | undefined): Promise<FoundSkill> {
    const { spec, name: server } = this.#server;
    if (isUnconfigured(spec)) throw new HostError("MCP_UNAVAILABLE", `MCP server "${server}" needs configuration: ${spec.reason}`);
    const skill = await this.#skills.find(uri, spec, signal);
    if (!this.#mayOffer(skill)) throw new HostError("MCP_SKILL_DYNAMIC", diagnoseDynamic(skill, server).message);
    const [verdict] = await this.#options.pins.judge(pinOwner(this.#server), [skill.subject]);
    if (verdict!.kind !== "accepted") return { held: heldDefinition(skill.subject, verdict!, server) };
    return { skill: skill.value };
  }

  async #makeIn(round: number, lists: ServerLists, spec: McpServerSpec, names: OwnNames): Promise<Made> {
    const last = this.#last;
    if (last?.lists === lists && last.names === names && last.round === round) return last.made;
    try {
      const made = await this.#make(lists, spec, names);
      this.#last = { lists, names, round, made };
      return made;
    } catch (error) {
      // A fault affects only this server; its previous version stays.
      this.#options.onError(toError(error));
      const message = `The features of MCP server "${spec.name}" could not be read: ${errorMessage(error)}. The previous ones stay in use.`;
      const made = last?.made ?? nothing;
      return { ...made, diagnostics: [...made.diagnostics, { severity: "error", code: "MCP_OFFER_FAILED", source: spec.name, message }] };
    }
  }

  async #make(lists: ServerLists, spec: McpServerSpec, names: OwnNames): Promise<Made> {
    const tools = await this.#tools.make(lists, spec, names.tools);
    const skills = this.#skills.make(lists, spec, names.skills);
    const material = this.#material.make(lists, spec);
    const bound = skills.found.filter((skill) => this.#mayOffer(skill));
    const unbound = skills.found.filter((skill) => !this.#mayOffer(skill));
    const said = instructionsOf(lists, spec.name, pinOwner(this.#server));
    const judged = await this.#judge([...tools.found, ...bound, ...said.found]);
    return {
      tools: tools.found.filter(judged.isTrusted).map(({ value }) => value),
      skills: bound.filter(judged.isTrusted).map(({ value }) => value),
      ...material.offers,
      instructions: said.found.find(judged.isTrusted)?.value,
      held: judged.held,
      diagnostics: [
        ...tools.diagnostics,
        ...skills.diagnostics,
        ...unbound.map((skill) => diagnoseDynamic(skill, spec.name)),
        ...material.diagnostics,
        ...said.diagnostics,
        ...judged.diagnostics,
      ],
    };
  }

  #mayOffer(skill: Pinned<SkillEntry>): boolean {
    return this.#options.pins.policy === "off" || canBePinned(skill);
  }

  async #judge(all: readonly Pinned<unknown>[]): Promise<Judged> {
    const verdicts = await this.#verdicts(all.map(({ subject }) => subject));
    if (verdicts instanceof Error) return this.#judgeByMemory(verdicts);
    const { name: server } = this.#server;
    const trusted = new Set<string>();
    const held: HeldDefinition[] = [];
    for (const [index, { subject }] of all.entries()) {
      const verdict = verdicts[index]!;
      if (verdict.kind === "accepted") trusted.add(keyOf(subject));
      else held.push(heldDefinition(subject, verdict, server));
    }
    this.#trusted = trusted;
    const isTrusted = ({ subject }: Pinned<unknown>): boolean => trusted.has(keyOf(subject));
    return { isTrusted, held, diagnostics: [...this.#outdated, ...diagnoseHeld(held, this.#options.howToApprove)] };
  }

  async #verdicts(subjects: readonly PinSubject[]): Promise<readonly PinVerdict[] | Error> {
    const owner = pinOwner(this.#server);
    try {
      // Once: pins of an earlier version, which regarded neither the real folder nor the environment.
      const former = this.#hasTakenOver ? undefined : formerPinOwner(this.#server);
      const taken = former === undefined ? undefined : await this.#options.pins.takeOver(owner, former);
      this.#hasTakenOver = true;
      if (taken !== undefined) this.#outdated = [diagnoseOutdated(this.#server, taken)];
      return await this.#options.pins.judge(owner, subjects);
    } catch (error) {
      return new Error(errorMessage(error), { cause: error });
    }
  }

  /** The approvals cannot be read: what was trusted stays available, and nothing new becomes available. */
  #judgeByMemory({ message: why }: Error): Judged {
    const trusted = this.#trusted;
    const source = this.#server.name;
    const message = `The approvals for MCP server "${source}" cannot be read (${why}), so none of its new definitions are available. Fix this, and restart the server.`;
    return {
      isTrusted: ({ subject }) => trusted.has(keyOf(subject)),
      held: [],
      diagnostics: [{ severity: "error", code: "MCP_PINS_UNREADABLE", source, message }],
    };
  }
}

type Made = Omit<ServerFeatures, "name" | "state">;

const nothing: Made = Object.freeze({
  tools: [],
  skills: [],
  prompts: [],
  resources: [],
  resourceTemplates: [],
  instructions: undefined,
  held: [],
  diagnostics: [],
});

interface Judged {
  isTrusted(pinned: Pinned<unknown>): boolean;
  readonly held: readonly HeldDefinition[];
  readonly diagnostics: readonly Diagnostic[];
}

function keyOf(subject: PinSubject): string {
  return `${subject.digest} ${placeOf(subject)}`;
}

// Keeps the system message short.
const maxInstructions = 20_000;

function instructionsOf(
  { instructions }: ServerLists,
  server: string,
  owner: string,
): { found: readonly Pinned<string>[]; diagnostics: readonly Diagnostic[] } {
  if (instructions === undefined || instructions.trim() === "") return { found: [], diagnostics: [] };
  const value = withoutHidden(instructions.slice(0, maxInstructions));
  const subject: PinSubject = { kind: "mcp-instructions", owner, name: "", digest: digestOf(value), content: value };
  return { found: [{ subject, value }], diagnostics: instructionFaults(instructions, server) };
}

function instructionFaults(instructions: string, source: string): readonly Diagnostic[] {
  const hidden = findHidden(instructions);
  const subject = `The instructions of MCP server "${source}" have`;
  const faults: [code: string, message: string][] = [];
  if (hidden !== undefined)
    faults.push([
      "MCP_TEXT_HIDDEN",
      `${subject} ${hiddenWords(hidden)}. People cannot see these characters, so they are removed before a model reads the text.`,
    ]);
  if (instructions.length > maxInstructions)
    faults.push(["MCP_INSTRUCTIONS_LONG", `${subject} ${instructions.length} characters; the first ${maxInstructions} are used.`]);
  return faults.map(([code, message]) => ({ severity: "warning", code, source, message }));
}

function diagnoseOutdated(server: SupervisedServer, taken: "taken" | "refused"): Diagnostic {
  const { name: source } = server;
  const spec = server.resolvedSpec ?? server.spec;
  const folder = "cwd" in spec && spec.cwd !== undefined ? spec.cwd : "its folder";
  const was = `The approvals that an earlier version of skillhost stored for MCP server "${source}" were not bound to its real folder and the variables that choose its code`;
  const message =
    taken === "taken"
      ? `${was}. They now apply only to the server that runs in ${folder} as configured.`
      : `${was}, so they no longer apply. Review its definitions, and approve them again.`;
  return { severity: "warning", code: "MCP_PINS_OUTDATED", source, message };
}

function isUnconfigured(spec: McpServerSpec | UnconfiguredServer): spec is UnconfiguredServer {
  return "reason" in spec;
}

function diagnoseState({ name: source, state, status, spec }: SupervisedServer): readonly Diagnostic[] {
  const why = status.error === undefined ? "" : `: ${status.error.message}`;
  if (state === "failed") return [{ severity: "error", code: "MCP_SERVER_FAILED", source, message: `MCP server "${source}" failed${why}` }];
  if (state === "needs-auth") {
    const message = `MCP server "${source}" requires authentication: run \`skillhost login ${source}\`.`;
    return [{ severity: "warning", code: "MCP_SERVER_SIGN_IN", source, message }];
  }
  if (state !== "needs-configuration") return [];
  const reason = isUnconfigured(spec) ? spec.reason : (status.error?.message ?? "Its configuration is incomplete.");
  return [
    { severity: "warning", code: "MCP_SERVER_UNCONFIGURED", source, message: `MCP server "${source}" needs configuration: ${reason}` },
  ];
}

function sameOffer(before: ServerFeatures | undefined, next: ServerFeatures): ServerFeatures {
  if (before === undefined) return Object.freeze(frozenLists(next, nothing));
  const offer = frozenLists(next, before);
  const isSame = (Object.keys(next) as (keyof ServerFeatures)[]).every((key) => offer[key] === before[key]);
  return isSame ? before : Object.freeze(offer);
}

function frozenLists(next: ServerFeatures, before: Made): ServerFeatures {
  return {
    ...next,
    tools: sameList(before.tools, next.tools),
    skills: sameList(before.skills, next.skills),
    prompts: sameList(before.prompts, next.prompts),
    resources: sameList(before.resources, next.resources),
    resourceTemplates: sameList(before.resourceTemplates, next.resourceTemplates),
    held: sameList(before.held, next.held, isSameJson),
    diagnostics: sameList(before.diagnostics, next.diagnostics, isSameJson),
  };
}

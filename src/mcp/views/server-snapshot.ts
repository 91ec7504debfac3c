import type { Diagnostic } from "../../base/diagnostic.ts";
import type { SourceSnapshot } from "../../tools/tool-source.ts";
import { type HeldDefinition, sameList } from "./held-definition.ts";
import type { ServerFeatures } from "./server-features.ts";

/** What connected servers say about their use, for the system message. */
export interface StatedInstructions {
  readonly server: string;
  readonly text: string;
}

/** What a set of servers offers. Each list, and the whole, is the same object until something in it changes. */
export interface ServerViewSnapshot extends Required<SourceSnapshot> {
  readonly servers: readonly ServerFeatures[];
  readonly instructions: readonly StatedInstructions[];
  readonly held: readonly HeldDefinition[];
}

export const emptySnapshot: ServerViewSnapshot = Object.freeze({
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
export function snapshotOf(servers: readonly ServerFeatures[], before: ServerViewSnapshot): ServerViewSnapshot {
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

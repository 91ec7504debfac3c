import { explainRange } from "../base/version-range.ts";

/** What one plugin needs of another. */
export interface Requirement {
  readonly name: string;
  readonly range: string;
}

/** How a plugin that is required stands. `absent`: no plugin has the name; `hint` says what to do about it. */
export type RequiredStanding =
  | { readonly kind: "active"; readonly version: string | undefined }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "absent"; readonly hint: string };

/** What a plugin requires by its code and by its manifest. */
export function requirementsOf(...maps: readonly (Readonly<Record<string, string>> | undefined)[]): readonly Requirement[] {
  return maps.flatMap((map) => Object.entries(map ?? {}).map(([name, range]) => ({ name, range })));
}

/** The first of its requirements that is not met, in words that go on from the plugin's name; undefined: all are. */
export function unmetRequirement(requires: readonly Requirement[], standingOf: (name: string) => RequiredStanding): string | undefined {
  for (const { name, range } of requires) {
    const standing = standingOf(name);
    const needs = `requires "${name}" ${range}`;
    if (standing.kind === "absent") return `${needs}, and there is no plugin of that name. ${standing.hint}`;
    if (standing.kind === "failed") return `${needs}, which failed: ${standing.reason}`;
    const problem = explainRange(range, standing.version);
    if (problem !== undefined) return `${needs}, and ${problem}.`;
  }
  return undefined;
}

import type { Diagnostic } from "../base/diagnostic.ts";
import type { OwnedScope } from "../io/scope.ts";
import type { CallsInFlight } from "../skills/load/calls-in-flight.ts";
import { isBundledSpecifier } from "./bundled.ts";
import type { Bundle } from "./bundles/bundle.ts";
import type { Contributions, PluginPlace } from "./contributions.ts";
import type { Requirement } from "./plugin-requirements.ts";
import type { PluginUse } from "./prepare-plugin.ts";
import type { PublishedSource } from "./published-source.ts";

/** One entry of a host's list of plugins: which generation of it serves, and what became of the latest attempt to load another. */
export interface PluginSlot {
  readonly use: PluginUse;
  /** The module that it is loaded from, where it comes by one. */
  readonly specifier: string | undefined;
  readonly isBundled: boolean;
  /** Its specifier until anything tells another. */
  name: string;
  version: string | undefined;
  /** `waiting`: nothing was tried yet. `unknown`: it failed, and not even its name is known. */
  state: "waiting" | "active" | "failed" | "unknown" | "disposed";
  /** Of the latest attempt. */
  diagnostics: Diagnostic[];
  /** The latest attempt failed, and an earlier generation serves. */
  isStale: boolean;
  /** It was kept from activation by another plugin: when that changes, it is tried again. */
  isHeldBack: boolean;
  generation: number;
  active: ActivePlugin | undefined;
  /** What the latest attempt was made of, whatever came of it. */
  attempted: ReadonlySet<string>;
}

/** One generation of a plugin, while it serves and until its calls have ended. */
export interface ActivePlugin {
  /** Rises with each first activation: they end in the opposite order. */
  readonly sequence: number;
  readonly requires: readonly Requirement[];
  /** Absent: it is code. */
  readonly bundle: Bundle | undefined;
  readonly contributions: Contributions;
  readonly published: readonly PublishedSource[];
  /** In the order in which they are disposed of. */
  readonly scopes: readonly OwnedScope[];
  readonly place: PluginPlace;
  /** Absent: it is never replaced, so nobody needs to know. */
  readonly calls: CallsInFlight | undefined;
  readonly files: ReadonlySet<string>;
}

export function createSlot(use: PluginUse): PluginSlot {
  const specifier = typeof use.use === "string" ? use.use : undefined;
  return {
    use,
    specifier,
    isBundled: specifier !== undefined && isBundledSpecifier(specifier),
    name: typeof use.use === "string" ? use.use : use.use.name,
    version: undefined,
    state: "waiting",
    diagnostics: [],
    isStale: false,
    isHeldBack: false,
    generation: 0,
    active: undefined,
    attempted: new Set(),
  };
}

/** Whether a slot's plugin can become another while the process lives. */
export function isReloadable({ specifier, isBundled }: PluginSlot): boolean {
  return specifier !== undefined && !isBundled;
}

import type { Diagnostic } from "../base/diagnostic.ts";
import type { SkillPermissions } from "../formats/skills/skill-permissions.ts";
import type { Prompt } from "../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../tools/resource.ts";
import type { Tool } from "../tools/tool.ts";
import type { ResourceSet, SkillEntry } from "../tools/tool-source.ts";
import type { TrustState } from "../trust/skill-trust.ts";
import type { SkillScope } from "../trust/trust-policy.ts";
import type { HeldTool } from "./load/skill-definitions.ts";

/** A text prompt of a skill, with `{baseDir}` and similar placeholders expanded. */
export interface SkillPrompt {
  /** Relative to the skill, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** One generation of a loaded skill folder. Immutable: a reload creates another. */
export interface Skill extends SkillEntry {
  readonly folder: string;
  readonly displayName?: string;
  readonly version?: string;
  readonly author?: unknown;
  /** `eager`: its prompts are part of every turn. `on-demand`: they are added when the skill is used. */
  readonly promptMode: "eager" | "on-demand";
  readonly prompts: readonly SkillPrompt[];
  /** False for `enabled: false` in its manifest: it is listed but contributes nothing. */
  readonly enabled: boolean;
  /** False: its folder is not trusted. Its code was not run; it is listed as far as its files show, and contributes nothing. */
  readonly mayRun: boolean;
  /** The origin of its folder when it was loaded. Undefined: a skill of skillhost itself. */
  readonly scope?: SkillScope | undefined;
  /** The model does not see the skill; a user may still invoke it. */
  readonly hiddenFromModel: boolean;
  readonly tools: readonly Tool[];
  /** The prompts that users may invoke: its instructions, its prompt files, and those of its modules. */
  readonly offeredPrompts: readonly Prompt[];
  /** The resources that its modules define. */
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  readonly files: ResourceSet;
  /** As written in the manifest; parsed when the servers are connected. */
  readonly mcpServers: Readonly<Record<string, unknown>>;
  readonly requires: Readonly<Record<string, string>>;
  readonly engines: Readonly<Record<string, string>>;
  /** The permissions that its manifest declares for its tools. */
  readonly permissions?: SkillPermissions;
  /** What its declarative tools use on the machine, one line per resource, by tool name. */
  readonly uses: ReadonlyMap<string, readonly string[]>;
  /** Counts the reloads of this folder, from 1. */
  readonly generation: number;
  /** Changes with the text, prompts, tools or description of the skill. */
  readonly signature: string;
}

/** The state of a folder: the active skill, and the diagnostics of its current files. */
export interface LoadedFolder {
  readonly folder: string;
  /** Absent: nothing of it has loaded yet. */
  readonly skill?: Skill;
  /** All diagnostics of the latest attempt, successful or not. */
  readonly diagnostics: readonly Diagnostic[];
  /** True: the latest attempt failed, and `skill` is the last working generation. */
  readonly stale: boolean;
  /** The state of its signature; absent if it was not checked. */
  readonly trust?: TrustState;
  /** Tools whose definitions wait for approval. */
  readonly held?: readonly HeldTool[];
}

/** Everything that is loaded, for all sessions. Roots are in the order of their folders' names. */
export interface SkillsSnapshot {
  readonly roots: ReadonlyMap<string, RootListing>;
  readonly folders: ReadonlyMap<string, LoadedFolder>;
  /** The only folders that differ from those of another snapshot. Absent: that is not known. */
  readonly changed?: { readonly before: ReadonlyMap<string, LoadedFolder>; readonly folders: ReadonlySet<string> };
}

/** A configured directory and its skill folders, in order of precedence. */
export interface RootListing {
  readonly root: string;
  readonly folders: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
  /** The package of each skill from a package, by the skill's folder. */
  readonly packages?: ReadonlyMap<string, SkillPackage>;
  /** Further folders to watch. */
  readonly watched?: readonly WatchedFolder[];
  /** The folders of packages that a package manager is replacing right now. */
  readonly beingReplaced?: readonly string[];
  /** Whether the process was out of file handles when the root was listed: the folders are the previous ones. */
  readonly isOutdated?: boolean;
}

/** The npm package that contains a skill. */
export interface SkillPackage {
  readonly name: string;
  readonly version?: string;
}

export interface WatchedFolder {
  readonly path: string;
  /** False: only its own entries. */
  readonly isWhole: boolean;
}

/** The changes of one reload. Durations are in milliseconds. */
export interface SkillsChange {
  readonly added: readonly SkillChange[];
  readonly updated: readonly SkillChange[];
  readonly removed: readonly SkillChange[];
  /** Failed attempts: the last working generation stays active, if there was one. */
  readonly failed: readonly FailedChange[];
  /** The changed files that caused this; empty for the first load. */
  readonly files: readonly string[];
}

/** The names that were added, changed and removed. */
export interface NamesChange {
  readonly added: readonly string[];
  readonly updated: readonly string[];
  readonly removed: readonly string[];
}

/** What changed in a skill that was loaded. */
export interface SkillChange {
  readonly name: string;
  readonly folder: string;
  readonly tools: NamesChange;
  readonly prompts: NamesChange;
  /** The resources of its modules, by URI or template. Its files are not included. */
  readonly resources: NamesChange;
  readonly durationMs: number;
}

/** A skill that could not be loaded after a change. */
export interface FailedChange {
  readonly name: string;
  readonly folder: string;
  readonly diagnostics: readonly Diagnostic[];
  /** Whether an earlier generation stays active. */
  readonly lastGoodServes: boolean;
  readonly durationMs: number;
}

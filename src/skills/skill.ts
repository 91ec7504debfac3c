import type { Diagnostic } from "../base/diagnostic.ts";
import type { SkillPermissions } from "../formats/skills/skill-permissions.ts";
import type { Prompt } from "../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../tools/resource.ts";
import type { Tool } from "../tools/tool.ts";
import type { ResourceSet, SkillEntry } from "../tools/tool-source.ts";
import type { TrustState } from "../trust/skill-trust.ts";
import type { HeldTool } from "./load/skill-definitions.ts";

/** A prompt file of a skill, as text, with `{baseDir}` and the like already expanded. */
export interface SkillPrompt {
  /** Relative to the skill, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** One generation of a loaded skill folder. Immutable: a reload makes another. */
export interface Skill extends SkillEntry {
  readonly folder: string;
  readonly displayName?: string;
  readonly version?: string;
  readonly author?: unknown;
  /** `eager`: its prompts belong to every turn. `on-demand`: they are given when the skill is used. */
  readonly promptMode: "eager" | "on-demand";
  readonly prompts: readonly SkillPrompt[];
  /** False: `enabled: false` in its manifest. It is listed and contributes nothing. */
  readonly enabled: boolean;
  /** False: its folder is not trusted. Nothing of it was run, it is listed as far as its files tell, and it contributes nothing. */
  readonly mayRun: boolean;
  /** The model is not told of it; a person may still use it. */
  readonly hiddenFromModel: boolean;
  readonly tools: readonly Tool[];
  /** What a person may call up: its instructions, its prompt files, and what its modules define. */
  readonly offeredPrompts: readonly Prompt[];
  /** What its modules define. */
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  readonly files: ResourceSet;
  /** As written in the manifest; whoever connects MCP servers parses them. */
  readonly mcpServers: Readonly<Record<string, unknown>>;
  readonly requires: Readonly<Record<string, string>>;
  readonly engines: Readonly<Record<string, string>>;
  /** What its manifest declares that its tools reach. */
  readonly permissions?: SkillPermissions;
  /** What its tools that are written in JSON use of the machine, a fact a line, by their names. */
  readonly uses: ReadonlyMap<string, readonly string[]>;
  /** Counts the reloads of this folder, from 1. */
  readonly generation: number;
  /** Changes when the text, prompts, tools or description of the skill do. */
  readonly signature: string;
}

/** What is known of a folder: the skill that serves, and what is wrong with what stands there now. */
export interface LoadedFolder {
  readonly folder: string;
  /** Absent: nothing of it can be served yet. */
  readonly skill?: Skill;
  /** Everything found in the latest attempt, whether or not it was taken. */
  readonly diagnostics: readonly Diagnostic[];
  /** True: the latest attempt failed, and `skill` is the last generation that worked. */
  readonly stale: boolean;
  /** How its signature stands; absent: nobody asked for it to be looked at. */
  readonly trust?: TrustState;
  /** Tools that wait for somebody to approve how they are defined. */
  readonly held?: readonly HeldTool[];
}

/** All that is loaded, for every session. Roots are given in the order of their folders' names. */
export interface SkillsSnapshot {
  readonly roots: ReadonlyMap<string, RootListing>;
  readonly folders: ReadonlyMap<string, LoadedFolder>;
}

/** What a configured directory turned out to be, and the skill folders it brings, in order of precedence. */
export interface RootListing {
  readonly root: string;
  readonly folders: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
  /** Of skills that came with packages: which package, by the skill's folder. */
  readonly packages?: ReadonlyMap<string, SkillPackage>;
  /** What must be watched beside the root itself. */
  readonly watched?: readonly WatchedFolder[];
  /** Packages, by their folders, that a package manager is replacing at this moment. */
  readonly inFlux?: readonly string[];
  /** Whether no more files could be opened when the root was to be listed: the folders are those from before. */
  readonly isOutdated?: boolean;
}

/** The npm package that a skill came with. */
export interface SkillPackage {
  readonly name: string;
  readonly version?: string;
}

export interface WatchedFolder {
  readonly path: string;
  /** False: only its own entries. */
  readonly isWhole: boolean;
}

/** What one reload changed. Durations are milliseconds. */
export interface SkillsChange {
  readonly added: readonly SkillChange[];
  readonly updated: readonly SkillChange[];
  readonly removed: readonly SkillChange[];
  /** Attempts that were not taken: the last good generation serves on, where there was one. */
  readonly failed: readonly FailedChange[];
  /** The files whose change caused this; empty for the first load. */
  readonly files: readonly string[];
}

/** The names of what came, became another, and went. */
export interface NamesChange {
  readonly added: readonly string[];
  readonly updated: readonly string[];
  readonly removed: readonly string[];
}

export interface SkillChange {
  readonly name: string;
  readonly folder: string;
  readonly tools: NamesChange;
  readonly prompts: NamesChange;
  /** What its modules define, by address or template. Its files are no part of this. */
  readonly resources: NamesChange;
  readonly durationMs: number;
}

export interface FailedChange {
  readonly name: string;
  readonly folder: string;
  readonly diagnostics: readonly Diagnostic[];
  /** Whether an earlier generation of it serves on. */
  readonly lastGoodServes: boolean;
  readonly durationMs: number;
}

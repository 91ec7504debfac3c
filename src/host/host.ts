import type { Diagnostic } from "../base/diagnostic.ts";
import type { Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-config.ts";
import type { SkillPrompt, SkillsChange } from "../skills/skill.ts";
import type { Explanation } from "./explain.ts";

/** A skill as a host lists it. */
export interface SkillInfo {
  readonly name: string;
  readonly displayName?: string;
  readonly description: string;
  readonly version?: string;
  readonly folder: string;
  /** `shadowed`: another skill has its name. `failed`: nothing of it could be loaded. */
  readonly state: "active" | "disabled" | "shadowed" | "failed";
  /** The rule that decided the state. */
  readonly rule: string;
  /** True: the files hold a fault, and the last generation that worked serves. */
  readonly stale: boolean;
  readonly generation: number;
  readonly promptMode: "eager" | "on-demand";
  readonly prompts: readonly SkillPrompt[];
  /** Names of its tools, as its author named them. */
  readonly tools: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface HostEvents {
  /** After a load: what it changed. The host's snapshot is already the new one. */
  "skills.changed": SkillsChange;
  /** Something is wrong that no skill's own diagnostics tell, such as trouble with watching. */
  diagnostic: Diagnostic;
}

/**
 * Loads skills once and serves them to any number of sessions. What is saved is served as soon as it loads; what does
 * not load leaves the last good generation serving.
 */
export interface Host extends AsyncDisposable {
  readonly version: string;
  readonly workingDirectory: string;
  /** All skills in order of precedence, as they are now. */
  readonly skills: readonly SkillInfo[];
  /** Everything that is wrong now, with its place. */
  readonly diagnostics: readonly Diagnostic[];
  on<K extends keyof HostEvents>(type: K, listener: (event: HostEvents[K]) => void): Disposable;
  /** Settles with a session that sees every skill. @throws HostError `SESSION_OPTIONS`, `HOST_CLOSED`. */
  createSession(options?: SessionOptions): Promise<Session>;
  /** Lets a skill that `disableSkill` or `disabledSkills` switched off contribute again, in every session. */
  enableSkill(name: string): void;
  /** Takes what a skill contributes out of every session. Calls that run go on. */
  disableSkill(name: string): void;
  /** Looks at all files again and loads what changed; a host that watches does so by itself. */
  reload(): Promise<void>;
  /** Why a name of a skill or tool means what it means: who has it, who lost it, by which rule. */
  explain(name: string): Explanation;
  /** Settles when nothing is being loaded and everything is watched. */
  idle(): Promise<void>;
  /** Ends every session, waits for the calls that run, and disposes of what skills opened. */
  close(): Promise<void>;
}

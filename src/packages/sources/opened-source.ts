import type { SourceCheck } from "../check-sources.ts";
import type { LockedSource } from "../lock-file.ts";
import type { FoundSkills } from "./find-skills.ts";
import type { StagedSkill } from "./stage-git-skills.ts";

/** A place on the network from which skills can be copied. Nothing of it is used yet. */
export interface OpenedSource {
  readonly origin: Omit<LockedSource, "digest" | "path">;
  /** The ref is a tag, which normally does not move. */
  readonly isTag: boolean;
  /** What the user should know before consenting. */
  readonly warnings: readonly string[];
  find(): Promise<FoundSkills>;
  has(path: string): Promise<boolean>;
  /** Writes skills into staging folders, after all rules for their files have been applied. */
  stage(paths: readonly string[]): Promise<readonly StagedSkill[]>;
}

export interface OpenOptions {
  /** A folder for what is fetched, which does not exist yet. */
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly checkSource: SourceCheck;
  onProgress(text: string): void;
}

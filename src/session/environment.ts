import { join } from "node:path";
import { HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { SkillEntry, SourceSnapshot } from "../tools/tool-source.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
import type { PushTrust } from "../trust/push-trust.ts";
import type { CatalogView } from "./catalog/catalog-view.ts";
import type { ToolCatalog } from "./catalog/tool-catalog.ts";
import type { SqlDatabase } from "./database/sql-database.ts";
import type { SessionServers } from "./mcp/server-connections.ts";
import type { PromptAndResourceSource } from "./prompts-resources/prompts-and-resources.ts";
import type { ResolvedSessionConfig, SessionDefaults } from "./session-config.ts";
import type { SessionCommand } from "./turns/slash-commands.ts";
import type { WorkspaceFiles } from "./workspace/workspace-files.ts";

/** A skill as people list it. */
export interface DescribedSkill {
  readonly name: string;
  readonly description: string;
  readonly folder?: string;
  readonly isActive: boolean;
  /** Whether a person may call it up by `/name`. */
  readonly isUserInvocable: boolean;
}

export function describeSkill({ name, description, folder, userInvocable = true }: SkillEntry, isActive: boolean): DescribedSkill {
  return { name, description, ...(folder !== undefined && { folder }), isActive, isUserInvocable: userInvocable };
}

/** What a session needs from its host. It shares its sources with other sessions; the session owns only what its clients pushed. */
export interface SessionEnvironment {
  readonly log: Logger;
  readonly defaults: SessionDefaults;
  /**
   * The catalog for a view and what clients pushed, of the sources as they are now. Equal views over the same snapshots
   * give one object: see `createCatalogMemo`. `pushed` holds a snapshot for each client, the one that wins first.
   */
  catalog(view: CatalogView, pushed: readonly SourceSnapshot[]): ToolCatalog;
  /** The skills that are active in a view, lowest precedence first. The same array until something about them changes. */
  skills(view: CatalogView): readonly SkillEntry[];
  /** All skills in a view, those that are switched off among them. Absent: only the active ones are known. */
  describeSkills?(view: CatalogView): readonly DescribedSkill[];
  /** The prompts and resources in a view, by source. The same array until something of it changes. Absent: there are none. */
  offerSources?(view: CatalogView): readonly PromptAndResourceSource[];
  /** The session's MCP servers. Absent: it has none. */
  readonly mcp?: SessionServers | undefined;
  /** The commands that people may give. Absent: none. */
  commands?(): ReadonlyMap<string, SessionCommand>;
  /** Calls the listener when a source of this session has published something new. */
  subscribe(listener: () => void): Disposable;
  /** Takes a configuration on, at the start and after each update: what it names is loaded from now on. */
  adopt(config: ResolvedSessionConfig): void;
  /** Settles when what was adopted is loaded, or rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void>;
  /** Remembers permissions for a place or for ever. Absent: they last as long as the session. */
  readonly approvals?: ApprovalStore | undefined;
  /** Has the say about pushed tools. Absent: all are offered. */
  readonly pushTrust?: PushTrust | undefined;
  /** The files of the session itself, such as its plan. Absent: those in its own folder. */
  readonly files?: WorkspaceFiles | undefined;
  /** The database of the session's client. Absent: a file in the session's own folder. `none`: the session cannot have one. */
  readonly database?: SqlDatabase | "none" | undefined;
  /** The session's own folder; it need not exist yet. */
  sessionDirectory(sessionId: string): string;
  /** The session ended: what was loaded for it alone may go. */
  release(): void;
}

/** The file in which the events of a session are stored. */
export function transcriptPath({
  environment,
  sessionId,
}: {
  readonly environment: SessionEnvironment;
  readonly sessionId: string;
}): string {
  return join(environment.sessionDirectory(sessionId), "events.jsonl");
}

/** The warning of a session that ends because another process takes it over. */
export const takenOverWarning = "session_taken_over";

export function takenOver(id: string, claimant: string): HostError {
  const advice = `Resume it with host.resumeSession("${id}", { takeOver: true }) to take it back.`;
  return new HostError("SESSION_TAKEN_OVER", `Session ${id} was taken over by ${claimant}. ${advice}`);
}

export function sessionClosed(id: string): HostError {
  return new HostError("SESSION_CLOSED", `Session ${id} is closed. Open another one.`);
}

import type { Logger } from "../base/logger.ts";
import type { SkillEntry, SourceSnapshot } from "../tools/tool-source.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
import type { CatalogView } from "./catalog-view.ts";
import type { ServerInstructions } from "./instructions.ts";
import type { ResolvedSessionConfig, SessionDefaults } from "./session-config.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

/** What a session needs of whoever made it. It shares its sources with other sessions; the session owns only what it pushed. */
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
  /** What connected MCP servers say about their use. The same array until it changes. Absent: nothing. */
  servers?(view: CatalogView): readonly ServerInstructions[];
  /** Tells that a source of this session published something new. */
  subscribe(listener: () => void): Disposable;
  /** Takes a configuration on, at the start and after each update: what it names is loaded from now on. */
  adopt(config: ResolvedSessionConfig): void;
  /** Settles when what was adopted is loaded, or rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void>;
  /** Remembers permissions for a place or for ever. Absent: they last as long as the session. */
  readonly approvals?: ApprovalStore | undefined;
  /** The session's own folder; it need not exist yet. */
  sessionDirectory(sessionId: string): string;
  /** The session ended: what was loaded for it alone may go. */
  release(): void;
}

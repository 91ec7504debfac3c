import type { Diagnostic } from "../base/diagnostic.ts";
import type { Logger, LogLevel } from "../base/logger.ts";
import type { FolderChoice, FolderStanding, FolderTrust } from "../trust/folder-trust.ts";
import type { TrustOptions } from "../trust/trust-settings.ts";
import type { Output } from "./output.ts";
import type { CliIo } from "./process-io.ts";

/** The options that every command takes. */
export interface CommonOptions {
  readonly skills?: readonly string[];
  readonly config?: string;
  readonly mcpConfig?: readonly string[];
  /** The code of the project may run, this time. */
  readonly trust?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly color: boolean;
  readonly logLevel?: LogLevel;
  readonly logFile?: string;
}

/** What a command works with. */
export interface CommandContext {
  readonly io: CliIo;
  readonly out: Output;
  readonly options: CommonOptions;
  /** The host's options that the configuration gives; the command line's are in `options`. */
  readonly config: ConfiguredOptions;
  /** Whether what is found in the project may run. */
  readonly consent: ProjectConsent;
  readonly log: Logger;
}

/** Where a configuration was read from. */
interface ConfigOrigin {
  readonly file: string;
  /** Somebody named the file on the command line, rather than that it was found in the project. */
  readonly isNamed: boolean;
  /** What in it does not count. */
  readonly diagnostics: readonly Diagnostic[];
}

/** What a configuration file says, with its paths absolute. */
export interface ConfiguredOptions {
  readonly skillDirectories?: readonly string[];
  readonly packageSkills?: boolean | readonly string[];
  readonly plugins?: readonly (string | { readonly use: string; readonly config?: unknown })[];
  readonly disabledSkills?: readonly string[];
  readonly conflicts?: unknown;
  readonly importTimeout?: number;
  readonly watchBackend?: string;
  readonly sessionsDirectory?: string;
  readonly workingDirectory?: string;
  readonly trust?: TrustOptions;
  readonly logLevel?: LogLevel;
  readonly logFile?: string;
  readonly origin?: ConfigOrigin;
  /** The file that names MCP servers under this key; they are read when they are needed. */
  readonly serversIn?: { readonly file: string; readonly at: readonly string[] };
}

/** Runs a command; settles with its exit code. */
export type RunCommand = (context: CommandContext) => Promise<number>;

/** Whether what the configuration says may run: it was named itself, or it is a trusted project's. */
export function countsAsNamed({ consent, config }: Pick<CommandContext, "consent" | "config">): boolean {
  return consent.isTrusted || config.origin?.isNamed === true;
}

/** Whether somebody has said that what is found in the project may run. What is named on the command line may in any case. */
export interface ProjectConsent {
  /** The top of the checkout that a command runs in, else the folder that it runs in. */
  readonly folder: string;
  readonly standing: FolderStanding;
  readonly isTrusted: boolean;
  readonly trust: FolderTrust;
  /** What `SKILLHOST_TRUST` names. */
  readonly ofUser: FolderChoice;
}

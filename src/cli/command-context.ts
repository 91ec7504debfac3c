import type { Diagnostic } from "../base/diagnostic.ts";
import type { Logger, LogLevel } from "../base/logger.ts";
import type { Isolation } from "../skills/isolation/isolation-policy.ts";
import type { FolderChoice, FolderStanding, FolderTrust } from "../trust/folder-trust.ts";
import type { TrustOptions } from "../trust/trust-settings.ts";
import type { Output } from "./output.ts";
import type { CliIo } from "./process-io.ts";

/** The options that every command takes. */
export interface CommonOptions {
  readonly skills?: readonly string[];
  readonly config?: string;
  readonly mcpConfig?: readonly string[];
  /** Allows the project's code to run, this time only. */
  readonly trust?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly color: boolean;
  readonly isolation?: Isolation;
  readonly logLevel?: LogLevel;
  readonly logFile?: string;
}

/** The inputs and outputs of a command. */
export interface CommandContext {
  readonly io: CliIo;
  readonly out: Output;
  readonly options: CommonOptions;
  /** The host options of the configuration; those of the command line are in `options`. */
  readonly config: ConfiguredOptions;
  /** Whether code of the project may run. */
  readonly consent: ProjectConsent;
  readonly log: Logger;
}

/** The file that a configuration was read from. */
interface ConfigOrigin {
  readonly file: string;
  /** The command line names the file; otherwise it was found in the project. */
  readonly isNamed: boolean;
  /** Reports the ignored settings. */
  readonly diagnostics: readonly Diagnostic[];
}

/** The settings of a configuration file, with absolute paths. */
export interface ConfiguredOptions {
  readonly skillDirectories?: readonly string[];
  /** Set by `--skills auto`: `skillDirectories` are those that were found, and `own` those that the file names. */
  readonly foundSkills?: { readonly own: readonly string[] | undefined };
  readonly packageSkills?: boolean | readonly string[];
  readonly plugins?: readonly (string | { readonly use: string; readonly config?: unknown })[];
  readonly disabledSkills?: readonly string[];
  readonly conflicts?: unknown;
  readonly importTimeout?: number;
  readonly isolation?: Isolation;
  readonly watchBackend?: string;
  readonly sessionsDirectory?: string;
  readonly workingDirectory?: string;
  readonly trust?: TrustOptions;
  readonly logLevel?: LogLevel;
  readonly logFile?: string;
  readonly origin?: ConfigOrigin;
  /** The file that contains MCP servers under this key; they are read on demand. */
  readonly serversIn?: { readonly file: string; readonly at: readonly string[] };
}

/** Runs a command; settles with its exit code. */
export type RunCommand = (context: CommandContext) => Promise<number>;

/** Whether code that the configuration names may run: the file was named on the command line, or its project is trusted. */
export function countsAsNamed({ consent, config }: Pick<CommandContext, "consent" | "config">): boolean {
  return consent.isTrusted || config.origin?.isNamed === true;
}

/** Whether the user has trusted the project's code. Code named on the command line may run in any case. */
export interface ProjectConsent {
  /** The root of the checkout in which a command runs, otherwise its working directory. */
  readonly folder: string;
  readonly standing: FolderStanding;
  readonly isTrusted: boolean;
  readonly trust: FolderTrust;
  /** The choice of `SKILLHOST_TRUST`. */
  readonly ofUser: FolderChoice;
}

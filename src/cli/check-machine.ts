import { accessSync, constants, type Dirent, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { satisfies } from "semver";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import type { Host } from "../host/host.ts";
import type { ResolvedHostOptions } from "../host/host-options.ts";
import { findConfinement } from "../io/process/confine-process.ts";
import { createFileApprovals } from "../trust/file-approvals.ts";

/** The Node.js versions that package.json allows. @internal Exported for tests. */
export const supportedNode = "^20.19.0 || >=22.12.0";

export interface MachineFacts {
  readonly nodeVersion: string;
  /** The system's limit of watched folders per user; undefined where there is no such limit. */
  readonly watchLimit: number | undefined;
  /** The number of folders below the skill directories, up to the counting limit. */
  readonly folders: number;
  /** Whether rules about paths and URLs can be enforced for programs: "enforced (…)" or "not enforced (why)". */
  readonly confinement: string;
}

/** Collects facts about this machine that matter for skills in these directories. */
export async function readMachine(roots: readonly string[]): Promise<MachineFacts> {
  const found = await findConfinement();
  const confinement = found.kind === "enforced" ? `enforced (${found.by})` : `not enforced (${found.why})`;
  return { nodeVersion: process.versions.node, watchLimit: readWatchLimit(), folders: countFolders(roots), confinement };
}

/** Reports problems of a machine. */
export function checkMachine({ nodeVersion, watchLimit, folders }: MachineFacts): readonly Diagnostic[] {
  const found: Diagnostic[] = [];
  if (!satisfies(nodeVersion, supportedNode, { includePrerelease: true })) {
    const message = `Node ${nodeVersion} is not supported. Install a supported version: ${supportedNode}.`;
    found.push({ severity: "error", code: "DOCTOR_NODE_VERSION", message });
  }
  if (watchLimit !== undefined && folders > watchLimit / 2) {
    const message = `There are ${folders} folders to watch, but this system allows at most ${watchLimit} watches for all programs of a user. Raise the limit (sysctl fs.inotify.max_user_watches=524288), or choose skill directories further down.`;
    found.push({ severity: "warning", code: "DOCTOR_WATCH_LIMIT", message });
  }
  return found;
}

function readWatchLimit(): number | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const limit = Number(readFileSync("/proc/sys/fs/inotify/max_user_watches", "utf8"));
    return Number.isInteger(limit) && limit > 0 ? limit : undefined;
  } catch {
    // Not every kernel exposes the limit.
    return undefined;
  }
}

const mostCounted = 200_000;

function countFolders(roots: readonly string[]): number {
  const waiting = [...roots];
  let count = 0;
  while (waiting.length > 0 && count < mostCounted) {
    const folder = waiting.pop()!;
    for (const entry of entriesOf(folder)) {
      if (!entry.isDirectory() || entry.name === "node_modules" || entry.name === ".git") continue;
      count++;
      waiting.push(join(folder, entry.name));
    }
  }
  return count;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // A folder that cannot be listed is not watched either; the skills' diagnostics report it.
    return [];
  }
}

/** A folder to which the host writes. */
interface WrittenFolder {
  readonly what: string;
  readonly path: string;
  /** Write access means deciding what is allowed, and read access means reading secrets. */
  readonly isPrivate: boolean;
}

/** Reports problems of the folders in which a host keeps its data. They need not exist yet. */
export function checkFolders(folders: readonly WrittenFolder[]): readonly Diagnostic[] {
  return folders.flatMap((folder) => checkFolder(folder));
}

function checkFolder({ what, path, isPrivate }: WrittenFolder): readonly Diagnostic[] {
  const existing = nearestExisting(path);
  const problem = whyNotWritable(existing);
  if (problem !== undefined) {
    const message = `The folder for ${what} is not writable (${problem}). Fix its permissions, or set SKILLHOST_HOME to a writable folder.`;
    return [{ severity: "error", code: "DOCTOR_FOLDER", message, file: path }];
  }
  if (!isPrivate || existing !== path || process.platform === "win32" || (statSync(path).mode & 0o022) === 0) return [];
  const message = `Other users can write to the folder for ${what}. Remove that permission (chmod go-w).`;
  return [{ severity: "error", code: "DOCTOR_FOLDER_OPEN", message, file: path }];
}

function nearestExisting(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function whyNotWritable(path: string): string | undefined {
  try {
    if (!statSync(path).isDirectory()) return `${path} is a file`;
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Reports problems of signatures that did not prevent loading, and what waits for approval. */
export async function checkTrust(
  host: Host,
  { approvalsDirectory }: ResolvedHostOptions,
  timeout: number,
  signal: AbortSignal,
): Promise<readonly Diagnostic[]> {
  const seen = await createFileApprovals({ directory: approvalsDirectory }).list({ kind: "mcp-seen" });
  // Without recorded definitions nothing can differ from them.
  const servers = seen.length > 0 ? await host.connectServers({ signal, timeout }) : [];
  const warned = host.skills.flatMap(({ diagnostics }) =>
    diagnostics.filter(({ code, severity }) => code.startsWith("TRUST_") && severity === "warning"),
  );
  return [
    ...warned,
    ...servers.flatMap(({ name, held }) => heldFinding(`MCP server ${JSON.stringify(name)}`, name, held)),
    ...host.skills.flatMap(({ name, held = [] }) => heldFinding(`Skill ${JSON.stringify(name)}`, name, held)),
    ...heldFinding("Tools that clients registered", "external", await host.heldTools()),
  ];
}

function heldFinding(what: string, source: string, held: readonly { readonly name: string }[]): readonly Diagnostic[] {
  if (held.length === 0) return [];
  const names = held.slice(0, 6).map(({ name }) => JSON.stringify(name));
  const more = held.length > names.length ? ` and ${held.length - names.length} more` : "";
  const message = `${what}: waiting for approval: ${names.join(", ")}${more}. Run "skillhost approve ${source}" to see what changed.`;
  return [{ severity: "warning", code: "DOCTOR_HELD", message, source }];
}

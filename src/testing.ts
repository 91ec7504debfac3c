import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { silentLogger } from "./base/logger.ts";
import type { Host } from "./host/host.ts";
import type { HostOptions } from "./host/host-options.ts";
import { createHost } from "./load-parts.ts";
import type { Session } from "./session/session.ts";
import type { SessionOptions } from "./session/session-config.ts";
import type { SkillsChange } from "./skills/skill.ts";
import { approveAll, type CallResult } from "./tools/tool.ts";
import type { CallArguments, ToolData, ToolName } from "./tools/tool-signatures.ts";

export { type ScriptedMessage, type ScriptedModel, scriptedModel } from "./models/scripted-model.ts";
export { matchSnapshot, modelText } from "./testing/model-snapshot.ts";
export { type RecordTrafficOptions, recordTraffic } from "./testing/record-traffic.ts";

/** A skill folder made for a test, in a temporary directory of its own. */
export interface TempSkill extends Disposable {
  /** The directory that holds the skill folder: give it to a host as a skill directory. */
  readonly root: string;
  readonly folder: string;
  /** The path of a file of the skill. */
  path(file: string): string;
  /** Writes a file of the skill, with the folders it needs. */
  write(file: string, text: string | Uint8Array): void;
  remove(file: string): void;
  rename(from: string, to: string): void;
}

/** Makes a skill folder of a literal: `tempSkill({ "SKILL.md": "…", "tools/greet.ts": "…" })`. Dispose of it to delete it. */
export function tempSkill(
  files: Readonly<Record<string, string | Uint8Array>>,
  options: { readonly name?: string; readonly root?: string } = {},
): TempSkill {
  const root = options.root ?? mkdtempSync(join(tmpdir(), "skillhost-test-"));
  const folder = join(root, options.name ?? "skill");
  const path = (file: string): string => join(folder, file);
  const write = (file: string, text: string | Uint8Array): void => {
    mkdirSync(dirname(path(file)), { recursive: true });
    writeFileSync(path(file), text);
  };
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) write(file, text);
  return {
    root,
    folder,
    path,
    write,
    remove: (file) => rmSync(path(file), { recursive: true }),
    rename: (from, to) => renameSync(path(from), path(to)),
    [Symbol.dispose]: () => rmSync(options.root === undefined ? root : folder, { recursive: true, force: true }),
  };
}

/** A host for a test, with a session in which every call is allowed. */
export interface TestHost extends AsyncDisposable {
  readonly host: Host;
  readonly session: Session;
  /** Calls a tool through the whole pipeline. */
  call<Name extends ToolName>(tool: Name, ...args: CallArguments<Name>): Promise<CallResult<ToolData<Name>>>;
  /**
   * Does something to the files and settles with the next change that the host reports because of it. Rejects when none
   * comes within `timeout` milliseconds (5,000 when absent).
   */
  change(
    edit: () => void | Promise<void>,
    options?: { readonly timeout?: number; readonly until?: (change: SkillsChange) => boolean },
  ): Promise<SkillsChange>;
  close(): Promise<void>;
}

/**
 * Options of a test host: those of a host, which has no plugins unless they are named, and of its session.
 *
 * @example
 * ```ts
 * const options: TestHostOptions = { skillDirectories: ["./skills"], session: { excludedTools: ["shell"] } };
 * ```
 */
export interface TestHostOptions extends HostOptions {
  /** Options of its session. Default: every call is allowed. */
  readonly session?: SessionOptions;
}

/** Starts a host that logs nothing and keeps sessions, approvals and what is trusted in a temporary folder that goes when it is closed. */
export async function createTestHost(options: TestHostOptions = {}): Promise<TestHost> {
  const { session: sessionOptions, ...hostOptions } = options;
  // Made when a result is too large, by whoever writes it there.
  const scratch = join(tmpdir(), `skillhost-test-sessions-${randomUUID()}`);
  const host = await createHost({
    logger: silentLogger,
    plugins: [],
    sessionsDirectory: join(scratch, "sessions"),
    approvalsDirectory: join(scratch, "approvals"),
    ...hostOptions,
    // What servers offered in other runs must not count in a test.
    mcp: { cacheDirectory: join(scratch, "mcp-cache"), ...hostOptions.mcp },
    // A test is code of the project already.
    trust: { directory: join(scratch, "trust"), folders: true, ...hostOptions.trust },
  });
  const close = async (): Promise<void> => {
    await host.close();
    rmSync(scratch, { recursive: true, force: true });
  };
  const session = await createSessionOrClose(host, { onPermissionRequest: approveAll, ...sessionOptions }, close);
  return {
    host,
    session,
    call: <Name extends ToolName>(tool: Name, ...[args]: CallArguments<Name>) =>
      session.callTool(tool as string, args ?? {}) as Promise<CallResult<ToolData<Name>>>,
    change: (edit, { timeout = 5000, until = () => true } = {}) => nextChange(host, edit, timeout, until),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Loads one skill folder, or a directory of them, without watching it: `const skill = await testSkill(new URL("..", import.meta.url))`. */
export function testSkill(folder: string | URL, options: TestHostOptions = {}): Promise<TestHost> {
  const path = typeof folder === "string" ? folder : fileURLToPath(folder);
  return createTestHost({ skillDirectories: [path.replace(/[\\/]$/, "")], watch: false, ...options });
}

async function createSessionOrClose(host: Host, options: SessionOptions, close: () => Promise<void>): Promise<Session> {
  try {
    return await host.createSession(options);
  } catch (error) {
    await close();
    throw error;
  }
}

async function nextChange(
  host: Host,
  edit: () => void | Promise<void>,
  timeout: number,
  until: (change: SkillsChange) => boolean,
): Promise<SkillsChange> {
  let timer: NodeJS.Timeout | undefined;
  let subscription: Disposable | undefined;
  try {
    const change = new Promise<SkillsChange>((resolve, reject) => {
      subscription = host.on("skills.changed", (seen) => {
        if (until(seen)) resolve(seen);
      });
      timer = setTimeout(() => reject(new Error(`The host reported no such change within ${timeout} ms.`)), timeout);
    });
    // Whatever the edit throws matters more than the change that then never comes.
    change.catch(() => {});
    await edit();
    return await change;
  } finally {
    clearTimeout(timer);
    subscription?.[Symbol.dispose]();
  }
}

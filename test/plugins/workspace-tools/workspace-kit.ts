import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import type { Session } from "../../../src/session/session.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import type { PermissionAsk, PermissionDecision, ToolResult } from "../../../src/tools/tool.ts";
import { type Files, tempFolder } from "../../skills/kit.ts";

/** A session with the workspace tools in its own folder. Everything is allowed, and requests are recorded. */
export interface Workspace {
  readonly folder: string;
  readonly host: Host;
  readonly session: Session;
  readonly asked: readonly PermissionAsk[];
  readonly changed: readonly { readonly path: string; readonly content: string }[];
  call(name: string, args?: object): Promise<ToolResult>;
  /** Only the text for the model. */
  text(name: string, args?: object): Promise<string>;
}

export async function openWorkspace(
  files: Files = {},
  options: SessionOptions = {},
  decide?: () => PermissionDecision,
  config: object = {},
): Promise<Workspace> {
  const folder = realpathSync(tempFolder(files));
  const host = await openHost(folder, tempFolder(), config);
  onTestFinished(() => host.close());
  return openSession(host, folder, options, decide);
}

/** The same with the editors' tool names. The tests of one file share a host. */
export async function openEditor(files: Files = {}, options: SessionOptions = {}, decide?: () => PermissionDecision): Promise<Workspace> {
  const folder = realpathSync(tempFolder(files));
  editor ??= openEditorHost();
  const { host } = await editor;
  return openSession(host, folder, { workingDirectory: folder, ...options }, decide);
}

interface EditorHost {
  readonly host: Host;
  readonly home: string;
}

let editor: Promise<EditorHost> | undefined;

async function openEditorHost(): Promise<EditorHost> {
  const home = mkdtempSync(join(tmpdir(), "skillhost-editor-"));
  return { host: await openHost(home, home, { presentation: "editor" }), home };
}

/** Closes what the tests of one file share. */
export async function closeEditors(): Promise<void> {
  const opened = await editor;
  editor = undefined;
  await opened?.host.close();
  if (opened !== undefined) rmSync(opened.home, { recursive: true, force: true });
}

function openHost(workingDirectory: string, home: string, config: object): Promise<Host> {
  return createHost({
    plugins: [{ use: "skillhost/plugins/workspace-tools", config: { ...config } }],
    skillDirectories: [],
    watch: false,
    workingDirectory,
    sessionsDirectory: `${home}/sessions`,
    approvalsDirectory: `${home}/approvals`,
  });
}

async function openSession(host: Host, folder: string, options: SessionOptions, decide?: () => PermissionDecision): Promise<Workspace> {
  const asked: PermissionAsk[] = [];
  const changed: { path: string; content: string }[] = [];
  const session = await host.createSession({
    persist: false,
    onPermissionRequest: (request) => {
      asked.push(request);
      return decide?.() ?? { kind: "approve-once" };
    },
    ...options,
  });
  session.onFileChanged(({ path, content }) => void changed.push({ path, content }));
  const call = (name: string, args: object = {}): Promise<ToolResult> => session.callTool(name, args);
  return { folder, host, session, asked, changed, call, text: async (name, args) => (await call(name, args)).textResultForLlm };
}

import { realpathSync } from "node:fs";
import { onTestFinished } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import type { Session } from "../../../src/session/session.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import type { PermissionAsk, PermissionDecision, ToolResult } from "../../../src/tools/tool.ts";
import { type Files, tempFolder } from "../../skills/kit.ts";

/** A session with the workspace tools in a folder of its own. Everything is allowed, and what was asked is kept. */
export interface Workspace {
  readonly folder: string;
  readonly host: Host;
  readonly session: Session;
  readonly asked: readonly PermissionAsk[];
  readonly changed: readonly { readonly path: string; readonly content: string }[];
  call(name: string, args?: object): Promise<ToolResult>;
  /** Only what the model reads. */
  text(name: string, args?: object): Promise<string>;
}

export async function openWorkspace(
  files: Files = {},
  options: SessionOptions = {},
  decide?: () => PermissionDecision,
): Promise<Workspace> {
  const folder = realpathSync(tempFolder(files));
  const home = tempFolder();
  const host = await createHost({
    plugins: ["skillhost/plugins/workspace-tools"],
    skillDirectories: [],
    watch: false,
    workingDirectory: folder,
    sessionsDirectory: `${home}/sessions`,
    approvalsDirectory: `${home}/approvals`,
  });
  onTestFinished(() => host.close());
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

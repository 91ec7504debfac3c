import { isRecord } from "../../../base/json.ts";
import { readKeepCount, type SessionWorkspace } from "../../../session/workspace/session-workspace.ts";
import type { WorkspaceMetadata } from "../../../session/workspace/workspace-metadata.ts";
import { notSupported } from "../connection/params.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The plan of a session, and the files of its workspace. */
export const workspaces: MethodFamily = {
  async "session.plan.read"(call) {
    const workspace = workspaceOf(call);
    const content = await workspace.plan.read();
    return { exists: content !== undefined, content: content ?? null, path: content === undefined ? null : workspace.planPath };
  },
  async "session.plan.update"(call) {
    const session = sessionOf(call);
    const isNew = await workspaceOf(call).plan.write(call.params.text("content"));
    session.session.events.append("session.plan_changed", { operation: isNew ? "create" : "update" });
  },
  async "session.plan.delete"(call) {
    const session = sessionOf(call);
    if (await workspaceOf(call).deletePlan()) session.session.events.append("session.plan_changed", { operation: "delete" });
  },
  "session.plan.readSqlTodos": async (call) => ({ rows: (await sessionOf(call).session.readSqlTodos()).rows }),
  "session.plan.readSqlTodosWithDependencies": (call) => sessionOf(call).session.readSqlTodos(),
  "session.workspaces.getWorkspace": describeWorkspace,
  async "session.workspaces.ensure"(call) {
    await workspaceOf(call).updateMetadata({ ...identityOf(sessionOf(call)), ...contextOf(call) });
    return describeWorkspace(call);
  },
  async "session.workspaces.updateMetadata"(call) {
    const session = sessionOf(call);
    const name = call.params.optionalText("name")?.trim();
    if (name !== undefined && name !== "") await session.setName(name, true);
    await workspaceOf(call).updateMetadata({ ...identityOf(session), ...contextOf(call) });
    return describeWorkspace(call);
  },
  "session.workspaces.listFiles": async (call) => ({ files: await workspaceOf(call).listFiles() }),
  "session.workspaces.readFile": async (call) => ({ content: await workspaceOf(call).readFile(call.params.text("path")) }),
  async "session.workspaces.createFile"(call) {
    await workspaceOf(call).createFile(call.params.text("path"), call.params.text("content"));
  },
  async "session.workspaces.createDirectory"(call) {
    await workspaceOf(call).createDirectory(call.params.text("path"), call.params.flag("recursive"));
  },
  async "session.workspaces.removePath"({ params, ...call }) {
    const options = { recursive: params.flag("recursive"), force: params.flag("force") };
    await workspaceOf({ params, ...call }).removePath(params.text("path"), options);
  },
  async "session.workspaces.renamePath"(call) {
    await workspaceOf(call).renamePath(call.params.text("source"), call.params.text("destination"));
  },
  "session.workspaces.statFile": (call) => workspaceOf(call).statFile(call.params.text("path")),
  "session.workspaces.saveLargePaste": async (call) => ({ saved: await workspaceOf(call).saveLargePaste(call.params.text("content")) }),
  async "session.workspaces.diff"(call) {
    const { params } = call;
    const { rewinding, conversation } = sessionOf(call).session;
    const requestedMode = params.text("mode");
    if (requestedMode !== "session") {
      const advice = 'mode "session" shows the files that the session has changed, with enableFileChangeTracking.';
      throw notSupported(`${params.method} of mode "${requestedMode}" is not supported by skillhost, which does not run git; ${advice}`);
    }
    const changes = conversation.isBusy ? undefined : await rewinding.diff(params.flag("ignoreWhitespace"));
    // Without git, there are no unstaged changes to fall back to.
    const unavailableReason = conversation.isBusy ? "session-busy" : "file-change-tracking-disabled";
    if (changes === undefined) return { requestedMode, mode: "unstaged", changes: [], isFallback: true, unavailableReason };
    return { requestedMode, mode: requestedMode, changes, isFallback: false };
  },
  "session.workspaces.listCheckpoints": async (call) => ({ checkpoints: await workspaceOf(call).listCheckpoints() }),
  "session.workspaces.readCheckpoint": async (call) => ({
    content: (await workspaceOf(call).readCheckpoint(call.params.optionalNumber("number") ?? -1)) ?? null,
  }),
  async "session.workspaces.addSummary"(call) {
    const { path: _path, ...summary } = await workspaceOf(call).addCheckpoint(call.params.text("title"), call.params.text("content"));
    return { summary, workspace: (await describeWorkspace(call)).workspace };
  },
  async "session.workspaces.truncateSummaries"(call) {
    await workspaceOf(call).truncateCheckpoints(readKeepCount(call.params.optionalNumber("keepCount") ?? -1));
    return describeWorkspace(call);
  },
  "session.workspaces.readAutopilotObjective": async (call) => ({ content: (await workspaceOf(call).readAutopilotObjective()) ?? null }),
  async "session.workspaces.writeAutopilotObjective"(call) {
    const isNew = await workspaceOf(call).writeAutopilotObjective(call.params.text("content"));
    return { operation: isNew ? "create" : "update" };
  },
  "session.workspaces.deleteAutopilotObjective": async (call) => ({ deleted: await workspaceOf(call).deleteAutopilotObjective() }),
  "session.workspaces.autopilotObjectiveExists": async (call) => ({
    exists: (await workspaceOf(call).readAutopilotObjective()) !== undefined,
  }),
};

function sessionOf({ server, params }: Pick<Call, "server" | "params">): CopilotSession {
  return findSession(server, params);
}

function workspaceOf(call: Pick<Call, "server" | "params">): SessionWorkspace {
  return sessionOf(call).session.workspace;
}

interface DescribedWorkspace {
  readonly workspace: object;
  readonly path: string;
}

/** What is stored about the workspace, beneath what the open session knows better. */
async function describeWorkspace(call: Call): Promise<DescribedWorkspace> {
  const session = sessionOf(call);
  const workspace = workspaceOf(call);
  const [stored, checkpoints] = await Promise.all([workspace.readMetadata(), workspace.listCheckpoints()]);
  return {
    workspace: {
      created_at: session.createdAt.toISOString(),
      ...known(stored),
      ...identityOf(session),
      ...(session.name !== undefined && { name: session.name }),
      summary_count: checkpoints.length,
      updated_at: session.modifiedAt.toISOString(),
    },
    path: workspace.path,
  };
}

function identityOf({ id, session }: CopilotSession): { readonly id: string; readonly cwd: string } {
  return { id, cwd: session.config.workingDirectory };
}

/** The fields that clients read, with their types; a file may have been edited. */
const fields: Readonly<Record<string, "string" | "boolean">> = {
  git_root: "string",
  repository: "string",
  branch: "string",
  name: "string",
  client_name: "string",
  user_named: "boolean",
  created_at: "string",
};

function known(stored: WorkspaceMetadata): object {
  const fitting = Object.entries(stored).filter(([name, value]) => Object.hasOwn(fields, name) && typeof value === fields[name]);
  return Object.fromEntries(fitting.filter(([name, value]) => name !== "created_at" || !Number.isNaN(Date.parse(String(value)))));
}

/** The parts of a client's context that are stored. */
function contextOf({ params }: Call): Readonly<Record<string, string>> {
  const context = params.get("context");
  if (!isRecord(context)) return {};
  const named = [
    ["git_root", context["gitRoot"]],
    ["repository", context["repository"]],
    ["branch", context["branch"]],
  ] as const;
  return Object.fromEntries(named.filter((field): field is readonly [(typeof field)[0], string] => typeof field[1] === "string"));
}

import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import { ClientWorkspace, type SessionWorkspace, Workspace } from "../sessions/workspace.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The plan of a session, and the files of its workspace. */
export const workspaces: MethodFamily = {
  async "session.plan.read"(call) {
    const workspace = workspaceOf(call);
    const content = await workspace.readPlan();
    return { exists: content !== undefined, content: content ?? null, path: content === undefined ? null : workspace.planPath };
  },
  async "session.plan.update"(call) {
    const session = sessionOf(call);
    const isNew = await workspaceOf(call).writePlan(call.params.text("content"));
    session.session.events.append("session.plan_changed", { operation: isNew ? "create" : "update" });
  },
  async "session.plan.delete"(call) {
    const session = sessionOf(call);
    if (await workspaceOf(call).deletePlan()) session.session.events.append("session.plan_changed", { operation: "delete" });
  },
  "session.workspaces.getWorkspace"(call) {
    const session = sessionOf(call);
    const { path } = workspaceOf(call);
    const times = { created_at: session.createdAt.toISOString(), updated_at: session.modifiedAt.toISOString() };
    const cwd = session.session.config.workingDirectory;
    return { workspace: { id: session.id, cwd, ...(session.name !== undefined && { name: session.name }), ...times }, path };
  },
  "session.workspaces.listFiles": async (call) => ({ files: await workspaceOf(call).list() }),
  "session.workspaces.readFile": async (call) => ({ content: await workspaceOf(call).read(call.params.text("path")) }),
  async "session.workspaces.createFile"(call) {
    const session = sessionOf(call);
    const path = call.params.text("path");
    const isNew = await workspaceOf(call).write(path, call.params.text("content"));
    session.session.events.append("session.workspace_file_changed", { path, operation: isNew ? "create" : "update" });
  },
};

function sessionOf({ server, params }: Call): CopilotSession {
  return findSession(server, params);
}

function workspaceOf(call: Call): SessionWorkspace {
  const { id, files } = sessionOf(call);
  return files === undefined ? new Workspace(call.server, id) : new ClientWorkspace(files);
}

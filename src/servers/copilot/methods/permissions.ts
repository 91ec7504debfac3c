import { isAbsolute, resolve } from "node:path";
import { isRecord } from "../../../base/json.ts";
import { isInside } from "../../../io/confine-path.ts";
import { approveUnasked } from "../../../session/permissions/permissions.ts";
import type { Session } from "../../../session/session.ts";
import { locationOf } from "../../../trust/trust-file.ts";
import { badParams, notSupported } from "../connection/params.ts";
import { toPromptRequest } from "../sessions/copilot-events.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Permissions: the answers of clients, rules, allowed folders and trust. */
export const permissions: MethodFamily = {
  "session.permissions.handlePendingPermissionRequest"({ server, client, params }) {
    const session = findSession(server, params);
    const answer = Object.fromEntries(Object.entries(params.record("result")).filter(([, value]) => value !== null));
    return { success: session.answerPermission(client, params.text("requestId"), answer) };
  },
  "session.permissions.pendingRequests"(call) {
    const pending = sessionOf(call).asks.pending.filter(({ kind }) => kind === "permission");
    return { items: pending.map(({ id, data }) => ({ requestId: id, request: toPromptRequest(data) })) };
  },
  async "session.permissions.setApproveAll"(call) {
    await setApproveAll(sessionOf(call), call.params.flag("enabled"));
    return { success: true };
  },
  "session.permissions.getMode": (call) => ({ mode: approvesAll(sessionOf(call)) ? "allow-all" : "manual" }),
  async "session.permissions.setMode"(call) {
    const session = sessionOf(call);
    const mode = call.params.text("mode");
    if (mode !== "manual" && mode !== "allow-all") {
      throw notSupported(`The permission mode ${JSON.stringify(mode)} is not supported by skillhost. Use "manual" or "allow-all".`);
    }
    await setApproveAll(session, mode === "allow-all");
    return { success: true, mode };
  },
  async "session.permissions.configure"(call) {
    const { params } = call;
    const session = sessionOf(call);
    const rules = params.optionalRecord("rules");
    const readsAll = params.optionalFlag("approveAllReadPermissionRequests");
    if (rules !== undefined || readsAll !== undefined) {
      const { allow = [], deny = [], ask } = session.config.options.permissions ?? {};
      const approved = rules === undefined ? allow : toRules(rules["approved"], params.method);
      const denied = rules === undefined ? deny : toRules(rules["denied"], params.method);
      const withoutRead = readsAll === undefined ? approved : approved.filter((rule) => rule !== "read");
      await session.update({ permissions: { allow: readsAll === true ? [...withoutRead, "read"] : withoutRead, deny: denied, ask } });
    }
    const all = params.optionalFlag("approveAllToolPermissionRequests");
    if (all !== undefined) await setApproveAll(session, all);
    const directories = params.optionalRecord("paths")?.["additionalDirectories"];
    if (Array.isArray(directories)) await session.update({ additionalDirectories: directories.filter(isText) });
    return { success: true };
  },
  async "session.permissions.modifyRules"(call) {
    const { params } = call;
    if (params.optionalText("scope") === "location") {
      throw notSupported(
        `${params.method} is not supported by skillhost for a location: answer a request with approve-for-location instead.`,
      );
    }
    const session = sessionOf(call);
    const { allow = [], ...others } = session.config.options.permissions ?? {};
    const removed = new Set(params.records("remove").map((rule) => toRule(rule, params.method)));
    const kept = params.flag("removeAll") ? [] : allow.filter((rule) => !removed.has(rule));
    const added = params.records("add").map((rule) => toRule(rule, params.method));
    await session.update({ permissions: { ...others, allow: [...new Set([...kept, ...added])] } });
    return { success: true };
  },
  "session.permissions.resetSessionApprovals"(call) {
    sessionOf(call).permissions.reset();
    return { success: true };
  },
  // Every client of a session receives its permission requests.
  "session.permissions.setRequired": (call) => ({ success: sessionOf(call).isOpen && call.params.optionalFlag("required") !== undefined }),
  "session.permissions.notifyPromptShown": (call) => ({ success: sessionOf(call).isOpen }),
  "session.permissions.paths.list"(call) {
    const { workingDirectory } = sessionOf(call).config;
    return { directories: allowedDirectories(call), primary: workingDirectory };
  },
  async "session.permissions.paths.add"(call) {
    const session = sessionOf(call);
    const path = pathOf(call);
    const { additionalDirectories } = session.config.turn;
    if (!additionalDirectories.includes(path)) await session.update({ additionalDirectories: [...additionalDirectories, path] });
    return { success: true };
  },
  "session.permissions.paths.isPathWithinAllowedDirectories"(call) {
    const path = pathOf(call);
    return { allowed: allowedDirectories(call).some((directory) => isInside(directory, path)) };
  },
  "session.permissions.paths.isPathWithinWorkspace"(call) {
    return { allowed: isInside(sessionOf(call).config.workingDirectory, pathOf(call)) };
  },
  async "session.permissions.paths.updatePrimary"(call) {
    await sessionOf(call).setWorkingDirectory(pathOf(call));
    return { success: true };
  },
  async "session.permissions.urls.setUnrestrictedMode"(call) {
    const session = sessionOf(call);
    const { allow = [], ...others } = session.config.options.permissions ?? {};
    const rest = allow.filter((rule) => rule !== "url");
    await session.update({ permissions: { ...others, allow: call.params.flag("enabled") ? [...rest, "url"] : rest } });
    return { success: true };
  },
  "session.permissions.locations.resolve": ({ params }) => describeLocation(params.text("workingDirectory")),
  // Approvals for a location apply to its sessions from the start.
  "session.permissions.locations.apply": ({ params }) => ({
    ...describeLocation(params.text("workingDirectory")),
    changed: false,
    appliedRuleCount: 0,
    appliedDirectoryCount: 0,
    appliedRules: [],
  }),
  async "session.permissions.locations.addToolApproval"(call) {
    const session = sessionOf(call);
    await session.ready(call.signal());
    const approval = call.params.record("approval");
    const tools = session.catalog.executables.values();
    const isKept = await session.permissions.approveFor(call.params.text("locationKey"), approval, tools);
    if (isKept) return { success: true };
    throw badParams(call.params.method, "approval does not match a tool of this session.");
  },
  "session.permissions.folderTrust.addTrusted"({ server, params }) {
    server.trustedFolders.add(resolve(params.text("path")));
    return { success: true };
  },
  async "session.permissions.folderTrust.isTrusted"({ server, params }) {
    return { trusted: await server.isTrusted(resolve(params.text("path"))) };
  },
};

function sessionOf({ server, params }: Call): Session {
  return findSession(server, params).session;
}

function approvesAll({ config }: Session): boolean {
  return config.onPermissionRequest === approveUnasked;
}

async function setApproveAll(session: Session, isOn: boolean): Promise<void> {
  if (isOn !== approvesAll(session)) await session.update({ onPermissionRequest: isOn ? approveUnasked : undefined });
}

function toRules(list: unknown, method: string): readonly string[] {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list) || !list.every(isRecord)) throw badParams(method, "rules must be arrays of objects with kind and argument.");
  return list.map((rule) => toRule(rule, method));
}

/** Formats a rule of the Copilot SDK as text, such as `shell(git push)`. */
function toRule({ kind, argument }: Readonly<Record<string, unknown>>, method: string): string {
  if (typeof kind !== "string" || kind === "") throw badParams(method, "a rule needs a kind.");
  return typeof argument === "string" ? `${kind}(${argument})` : kind;
}

function allowedDirectories(call: Call): readonly string[] {
  const { workingDirectory, turn } = sessionOf(call).config;
  return [workingDirectory, ...turn.additionalDirectories.map((directory) => resolve(workingDirectory, directory))];
}

function pathOf(call: Call): string {
  const path = call.params.text("path");
  return isAbsolute(path) ? resolve(path) : resolve(sessionOf(call).config.workingDirectory, path);
}

function describeLocation(workingDirectory: string): object {
  return { locationKey: locationOf(resolve(workingDirectory)), locationType: "dir" };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

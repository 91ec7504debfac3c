import { dirname, join, resolve } from "node:path";
import type { Diagnostic } from "../../../base/diagnostic.ts";
import type { DescribedSkill } from "../../../session/environment.ts";
import type { Session } from "../../../session/session.ts";
import { describeSkill } from "../sessions/copilot-events.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The skills of a session and of the server. Saved files are loaded without `reload`, which only makes that happen sooner. */
export const skills: MethodFamily = {
  async "session.skills.list"(call) {
    const session = await loaded(call);
    return { skills: session.describeSkills().map(describeSkill) };
  },
  async "session.skills.ensureLoaded"(call) {
    await loaded(call);
  },
  async "session.skills.reload"(call) {
    const host = await call.server.host();
    await host.reload();
    const session = await loaded(call);
    findSession(call.server, call.params).emitSkills();
    const folders = session.describeSkills().flatMap(({ folder }) => folder ?? []);
    return toReport(host.diagnostics.filter((diagnostic) => isOf(diagnostic, folders)));
  },
  async "session.skills.enable"(call) {
    const { session, name, disabled } = named(call);
    if (disabled.includes(name)) await session.update({ disabledSkills: disabled.filter((other) => other !== name) });
  },
  async "session.skills.disable"(call) {
    const { session, name, disabled } = named(call);
    if (!disabled.includes(name)) await session.update({ disabledSkills: [...disabled, name] });
  },
  async "session.skills.getInvoked"({ server, params }) {
    let turn = 0;
    const invoked = new Map<unknown, object>();
    for (const { type, data, agentId } of await findSession(server, params).past()) {
      if (type === "user.message" && data["source"] === undefined && agentId === undefined) turn++;
      if (type !== "skill.invoked") continue;
      const { name, path, content, allowedTools } = data;
      invoked.set(name, { name, path, content, ...(allowedTools !== undefined && { allowedTools }), invokedAtTurn: turn });
    }
    return { skills: [...invoked.values()] };
  },
  async "skills.discover"({ server, params }) {
    const host = await server.host();
    const ofProjects = params.texts("projectPaths").map((project) => join(resolve(project), "skills"));
    const own = [...ofProjects, ...params.texts("skillDirectories")];
    const session = await host.createSession({ persist: false, skillDirectories: own });
    try {
      const isHidden = (skill: DescribedSkill): boolean =>
        params.flag("excludeHostSkills") && host.skills.some(({ folder }) => folder === skill.folder);
      return {
        skills: session
          .describeSkills()
          .filter((skill) => !isHidden(skill))
          .map(describeSkill),
      };
    } finally {
      await session.disconnect();
    }
  },
  async "skills.getDiscoveryPaths"({ server, params }) {
    const host = await server.host();
    const ofHost = new Set([join(host.workingDirectory, "skills"), ...host.skills.map(({ folder }) => dirname(folder))]);
    const ofProjects = params.texts("projectPaths").map((projectPath) => ({
      path: join(resolve(projectPath), "skills"),
      scope: "project",
      preferredForCreation: true,
      projectPath,
    }));
    const custom = [...ofHost].map((path, index) => ({
      path,
      scope: "custom",
      preferredForCreation: index === 0 && ofProjects.length === 0,
    }));
    return { paths: [...ofProjects, ...(params.flag("excludeHostSkills") ? [] : custom)] };
  },
  async "skills.config.setDisabledSkills"({ server, params }) {
    const host = await server.host();
    const disabled = new Set(params.texts("disabledSkills"));
    for (const { name, state } of host.skills) if (state === "disabled" && !disabled.has(name)) host.enableSkill(name);
    for (const name of disabled) host.disableSkill(name);
  },
  async "skills.config.setSkillDisabled"({ server, params }) {
    const host = await server.host();
    const name = params.optionalText("name") ?? params.text("skillName");
    if (params.optionalFlag("disabled") ?? true) host.disableSkill(name);
    else host.enableSkill(name);
  },
};

async function loaded({ server, params }: Call): Promise<Session> {
  const { session } = findSession(server, params);
  await session.loadSources();
  return session;
}

function named({ server, params }: Call): { readonly session: Session; readonly name: string; readonly disabled: readonly string[] } {
  const { session } = findSession(server, params);
  return { session, name: params.text("name"), disabled: session.config.view.disabledSkills };
}

function isOf({ file }: Diagnostic, folders: readonly string[]): boolean {
  return file === undefined || folders.some((folder) => file.startsWith(dirname(folder)));
}

function toReport(diagnostics: readonly Diagnostic[]): { readonly warnings: readonly string[]; readonly errors: readonly string[] } {
  const texts = (severity: Diagnostic["severity"]): readonly string[] =>
    diagnostics
      .filter((one) => one.severity === severity)
      .map(({ file, message }) => (file === undefined ? message : `${file}: ${message}`));
  return { warnings: texts("warning"), errors: texts("error") };
}

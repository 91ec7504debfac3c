import type { ExplainedTool } from "../../host/explain.ts";
import type { Host, SkillInfo } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import { toolAsTypeScript } from "../../tools/schema/schema-as-typescript.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { isolationLines, permissionLines, skillHeading } from "../describe.ts";
import { didYouMean } from "../did-you-mean.ts";
import { withHost } from "../open-host.ts";
import type { Output } from "../output.ts";
import { visibleLine, visibleText } from "../terminal-style.ts";
import { findTool as findListed } from "./call.ts";

export interface ShowOptions {
  /** Print the JSON Schemas as they are sent to models. */
  readonly schema?: boolean;
}

/** Shows what a tool takes and returns, or what a skill contains. `explain` shows why the name refers to it. */
export function show(context: CommandContext, name: string, options: ShowOptions): Promise<number> {
  const { out } = context;
  return withHost(context, {}, async (host) => {
    const session = await host.createSession({ persist: false });
    // Tools of an MCP server are known only after it has started.
    if (findTool(session, name) === undefined && findSkills(host, name).length === 0) await session.ready(context.io.signal);
    const tool = findTool(session, name);
    const skills = findSkills(host, name);
    if (tool === undefined && skills.length === 0) throw unknownName(name, session, host);
    const fates = tool === undefined ? [] : host.explain(tool.definition.name).tools;
    if (out.isJson) {
      const { definition, signature } = tool ?? {};
      const data = {
        ...(definition && { tool: { ...definition, typescript: toolAsTypeScript(definition), signature, candidates: fates } }),
        ...(skills.length > 0 && { skills }),
      };
      out.envelope({ ok: true, data, diagnostics: host.diagnostics });
      return 0;
    }
    if (tool !== undefined) printTool(tool, fates, options, out);
    for (const [index, skill] of skills.entries()) {
      if (tool !== undefined || index > 0) out.line();
      await printSkill(skill, session, out);
    }
    return 0;
  });
}

type Executable = NonNullable<ReturnType<Session["catalog"]["executables"]["get"]>>;

function findTool(session: Session, name: string): Executable | undefined {
  const listed = findListed(session, name);
  return listed && session.catalog.executables.get(listed.name);
}

function findSkills(host: Host, name: string): readonly SkillInfo[] {
  return host.skills.filter((skill) => skill.name === name);
}

function unknownName(name: string, session: Session, host: Host): CliError {
  const hidden = host.explain(name).tools.length > 0;
  const names = [...session.listTools().map((tool) => tool.name), ...host.skills.map((skill) => skill.name)];
  const hint = hidden
    ? ` A tool with this name exists but is not available: run "skillhost explain ${name}" to see why.`
    : didYouMean(name, names);
  const errors = host.diagnostics.filter(({ severity }) => severity === "error");
  return new CliError("NAME_UNKNOWN", `No available tool or skill is named "${name}".${hint} Run "skillhost list" to see all.`, 1, errors);
}

function printTool(
  { definition, origin, signature }: Executable,
  fates: readonly ExplainedTool[],
  { schema }: ShowOptions,
  out: Output,
): void {
  const { style } = out;
  const file = origin.file === undefined ? "" : `  ${style.dim(out.path(origin.file))}`;
  out.line(`${style.bold(visibleLine(definition.name))}  ${origin.kind} ${visibleLine(origin.source)}${file}`);
  out.line();
  out.line(visibleText(schema === true ? schemasOf(definition) : toolAsTypeScript(definition)));
  out.line();
  const hints = hintsOf(definition);
  if (hints.length > 0) out.line(`${style.dim("hints")}      ${hints.join(", ")}`);
  out.line(`${style.dim("signature")}  ${signature}`);
  for (const { kind, source, state, rule, renamedTo, file: other } of fates.filter((fate) => fate.state !== "wins")) {
    const where = other === undefined ? "" : ` (${out.path(other)})`;
    const fate = renamedTo === undefined ? state : `${state} to ${visibleLine(renamedTo)}`;
    out.line(`${style.dim("also")}       ${kind} ${visibleLine(source)}${where}: ${style.yellow(fate)}, because ${visibleLine(rule)}`);
  }
  out.line(`${style.dim("call")}       skillhost call ${visibleLine(definition.name)} --help`);
}

function schemasOf({ parameters, outputSchema }: ToolDefinition): string {
  const schemas = { ...(parameters && { parameters }), ...(outputSchema && { outputSchema }) };
  return JSON.stringify(schemas, undefined, 2);
}

function hintsOf({ annotations = {}, skipPermission, isTerminal, timeout }: ToolDefinition): readonly string[] {
  return [
    ...(annotations.readOnlyHint === true ? ["read-only"] : []),
    ...(annotations.destructiveHint === true ? ["destructive"] : []),
    ...(annotations.idempotentHint === true ? ["idempotent"] : []),
    ...(annotations.openWorldHint === true ? ["reaches outside"] : []),
    ...(skipPermission === true ? ["runs without permission"] : []),
    ...(isTerminal === true ? ["ends the turn"] : []),
    ...(timeout === undefined ? [] : [`deadline ${timeout} ms`]),
  ];
}

async function printSkill(skill: SkillInfo, session: Session, out: Output): Promise<void> {
  const { style } = out;
  out.line(skillHeading(skill, out));
  if (skill.description !== "") out.line(visibleText(skill.description));
  if (skill.state !== "active") out.line(`${style.dim("because")}  ${visibleLine(skill.rule)}`);
  for (const line of [...permissionLines(skill.permissions), ...(await isolationLines(skill))]) out.line(style.yellow(line));
  for (const { path, text } of skill.prompts) {
    out.line(`${style.dim("prompt")}   ${visibleLine(path)} (${skill.promptMode}, ${text.length} characters)`);
  }
  for (const name of skill.tools) {
    const tool = skill.state === "active" ? findTool(session, `${skill.name}/${name}`) : undefined;
    const line = tool === undefined ? `${name}  (not available: skillhost explain ${name})` : oneLine(tool.definition);
    out.line(`${style.dim("tool")}     ${visibleLine(line)}`);
  }
  for (const diagnostic of skill.diagnostics) out.line(out.diagnostic(diagnostic));
}

/** `get_weather(city, units?)  Returns the weather.` */
function oneLine({ name, description = "", parameters }: ToolDefinition): string {
  const properties = parameters?.["properties"];
  const required = parameters?.["required"];
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const args = names.map((each) => (Array.isArray(required) && required.includes(each) ? each : `${each}?`));
  const [first = ""] = description.trim().split(/\n|(?<=\.)\s/);
  return `${name}(${args.join(", ")})  ${first}`.trimEnd();
}

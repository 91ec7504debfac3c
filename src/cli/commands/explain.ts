import type { ExplainedSkill, ExplainedTool, Explanation } from "../../host/explain.ts";
import type { Host, SkillInfo } from "../../host/host.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { isolationLines, packageWords, permissionLines, printPlugin, trustWords } from "../describe.ts";
import { didYouMean } from "../did-you-mean.ts";
import { withHost } from "../open-host.ts";
import type { Output } from "../output.ts";
import { visibleLine } from "../terminal-style.ts";

export interface ExplainOptions {
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
}

/** The filter that keeps a tool out of a session. */
interface Filtered {
  readonly filter: string;
  readonly pattern?: string;
}

/** Explains how a name was resolved. */
export function explain(context: CommandContext, name: string, options: ExplainOptions): Promise<number> {
  const { out } = context;
  return withHost(context, {}, async (host) => {
    const { available, excluded } = options;
    const session = await host.createSession({
      persist: false,
      ...(available && { availableTools: available }),
      ...(excluded && { excludedTools: excluded }),
    });
    if (isUnknown(host.explain(name))) await session.ready(context.io.signal);
    const explanation = host.explain(name);
    const plugin = host.plugins.find((one) => one.name === name);
    if (isUnknown(explanation) && plugin === undefined) throw unknownName(name, host);
    const hidden = session.catalog.hidden.get(name);
    const filtered = hidden && { filter: hidden.filter, ...(hidden.pattern !== undefined && { pattern: hidden.pattern }) };
    const filters = session.catalog.notices.map(({ message }) => message);
    if (out.isJson)
      out.envelope({
        ok: true,
        data: { ...explanation, ...(filtered && { hiddenBy: filtered }), ...(plugin && { plugin }) },
        diagnostics: explanation.diagnostics,
      });
    else await print(explanation, host.skills, filtered, filters, out);
    if (plugin !== undefined && !out.isJson) {
      out.line(out.style.bold("plugin"));
      printPlugin(plugin, out);
    }
    return 0;
  });
}

/** Whether no skill or tool has the name. Tools of MCP servers are known only after their servers have started. */
function isUnknown({ skills, tools }: Explanation): boolean {
  return skills.length + tools.length === 0;
}

function unknownName(name: string, host: Host): CliError {
  const names = [...host.skills.flatMap((skill) => [skill.name, ...skill.tools]), ...host.plugins.map((plugin) => plugin.name)];
  const text = `No tool or skill is named "${name}".${didYouMean(name, names)} Run "skillhost list" to see all.`;
  return new CliError(
    "NAME_UNKNOWN",
    text,
    1,
    host.diagnostics.filter(({ severity }) => severity === "error"),
  );
}

async function print(
  explanation: Explanation,
  skills: readonly SkillInfo[],
  filtered: Filtered | undefined,
  filters: readonly string[],
  out: Output,
): Promise<void> {
  const name = visibleLine(explanation.name);
  if (explanation.tools.length > 0) out.line(out.style.bold(`tool ${name}`));
  for (const tool of explanation.tools) printTool(tool, tool.state === "wins" ? filtered : undefined, out);
  if (explanation.skills.length > 0) out.line(out.style.bold(`skill ${name}`));
  for (const skill of explanation.skills) await printSkill(skill, skills, out);
  for (const diagnostic of explanation.diagnostics) out.line(out.diagnostic(diagnostic));
  for (const filter of filters) out.note(visibleLine(filter));
}

function printTool(tool: ExplainedTool, filtered: Filtered | undefined, out: Output): void {
  const { style } = out;
  const place = tool.file === undefined ? "" : ` (${out.path(tool.file)})`;
  const state = filtered ? style.yellow("hidden") : tool.state === "wins" ? style.green("wins") : style.yellow(tool.state);
  out.line(`  ${state}  ${tool.kind} ${visibleLine(tool.source)}${place}`);
  out.line(`    ${style.dim("because")} ${visibleLine(filtered ? filterRule(filtered) : tool.rule)}`);
  if (tool.renamedTo !== undefined) out.line(`    ${style.dim("offered as")} ${visibleLine(tool.renamedTo)}`);
  for (const line of tool.uses ?? []) out.line(`    ${style.yellow(visibleLine(line))}`);
  if (tool.engine) out.line(`    ${style.dim("run by")} ${tool.engine.engine}: ${visibleLine(tool.engine.reason)}`);
}

function filterRule({ filter, pattern }: Filtered): string {
  return pattern === undefined ? `no pattern in ${filter} matches it` : `"${pattern}" in ${filter} matches it`;
}

async function printSkill(skill: ExplainedSkill, skills: readonly SkillInfo[], out: Output): Promise<void> {
  const { style } = out;
  const state = skill.state === "active" ? style.green(skill.state) : style.yellow(skill.state);
  out.line(`  ${state}${packageWords(skill.package, style)}  ${out.path(skill.folder)}`);
  out.line(`    ${style.dim("because")} ${visibleLine(skill.rule)}`);
  if (skill.winner !== undefined) out.line(`    ${style.dim("the name belongs to")} ${out.path(skill.winner)}`);
  for (const { name, range, isMet, version, problem } of skill.requires ?? []) {
    const fate = isMet
      ? style.green(version === undefined ? "found" : `version ${visibleLine(version)}`)
      : style.yellow(visibleLine(problem ?? ""));
    out.line(`    ${style.dim("requires")} ${visibleLine(name)} ${visibleLine(range)}: ${fate}`);
  }
  const { trust, held = [], permissions, isolation } = skills.find(({ folder }) => folder === skill.folder) ?? {};
  const isolated = await isolationLines(isolation === undefined ? {} : { isolation });
  for (const line of [...permissionLines(permissions), ...isolated]) out.line(`    ${style.yellow(line)}`);
  if (trust !== undefined)
    out.line(`    ${style.dim("trust")} ${trustWords(trust, style)}; signatures of the scope "${trust.scope}": ${trust.mode}`);
  for (const { name, reason } of held)
    out.line(`    ${style.dim("waiting for approval")} ${visibleLine(name)}, ${reason}: skillhost approve ${visibleLine(skill.name)}`);
  if (skill.tools.length > 0) out.line(`    ${style.dim("tools")} ${skill.tools.map(visibleLine).join(", ")}`);
}

import type { Diagnostic } from "../../base/diagnostic.ts";
import type { SkillInfo } from "../../host/host.ts";
import { approveAll } from "../../session/permissions.ts";
import type { CommandContext } from "../command-context.ts";
import { counted, skillHeading } from "../describe-skill.ts";
import { withHost } from "../open-host.ts";
import type { Output } from "../output.ts";
import { visibleLine } from "../visible-text.ts";

/** Lists skills with their tools and prompts, and every diagnostic where it belongs. */
export function list(context: CommandContext): Promise<number> {
  const { out } = context;
  return withHost(context, {}, async (host) => {
    const { skills, diagnostics } = host;
    const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
    const tools = session.listTools();
    if (out.isJson) {
      out.envelope({ ok: true, data: { skills, tools }, diagnostics });
      return 0;
    }
    for (const skill of skills) printSkill(skill, out);
    printRest(skills, diagnostics, out);
    out.line(`${counted(skills.length, "skill")}, ${counted(tools.length, "tool")}.`);
    if (skills.length === 0) out.note('Make one with "skillhost new skill <name>", or name a directory with --skills.');
    return 0;
  });
}

function printSkill(skill: SkillInfo, out: Output): void {
  const { style } = out;
  out.line(skillHeading(skill, out));
  if (skill.description !== "") out.line(`  ${visibleLine(shortened(skill.description))}`);
  if (skill.state !== "active") out.line(`  ${style.dim("because")} ${visibleLine(skill.rule)}`);
  if (skill.tools.length > 0) out.line(`  ${style.dim("tools")}    ${skill.tools.map(visibleLine).join(", ")}`);
  const prompts = skill.prompts.map((prompt) => visibleLine(prompt.path)).join(", ");
  if (prompts !== "") out.line(`  ${style.dim("prompts")}  ${prompts} (${skill.promptMode})`);
  for (const diagnostic of skill.diagnostics) out.line(`  ${out.diagnostic(diagnostic)}`);
  out.line();
}

/** What concerns no skill alone: clashes of names, directories that cannot be read. */
function printRest(skills: readonly SkillInfo[], diagnostics: readonly Diagnostic[], out: Output): void {
  const printed = new Set(skills.flatMap((skill) => skill.diagnostics));
  const rest = diagnostics.filter((diagnostic) => !printed.has(diagnostic));
  for (const diagnostic of rest) out.line(out.diagnostic(diagnostic));
  if (rest.length > 0) out.line();
}

function shortened(text: string): string {
  return text.length > 160 ? `${text.slice(0, 159).trimEnd()}…` : text;
}

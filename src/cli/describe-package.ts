import type { Drift } from "../packages/compare-locks.ts";
import type { Preview, PreviewedPackage, PreviewedSkill } from "../packages/preview.ts";
import { counted, named, permissionLines } from "./describe-skill.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./visible-text.ts";

/**
 * What is about to be installed, for a person to agree to. Of long texts the beginning and the end are shown, with what is
 * between counted, unless `isCut` is false.
 */
export function describePreview(
  { packages, dependencies, removed }: Preview,
  out: Output,
  { isCut = true }: { readonly isCut?: boolean } = {},
): { readonly lines: readonly string[]; readonly isWhole: boolean } {
  const cut: Cut = { isCut, isWhole: true };
  const most = isCut ? 200 : Number.POSITIVE_INFINITY;
  const lines = packages.flatMap((each) => describePackage(each, out, cut));
  if (dependencies.length > 0)
    lines.push(`Beside that come ${counted(dependencies.length, "package")} it needs: ${named(dependencies, most)}.`);
  if (removed.length > 0) lines.push(`These go: ${named(removed, most)}.`);
  return { lines, isWhole: cut.isWhole && Math.max(dependencies.length, removed.length) <= most };
}

/** Whether anything of what is shown was left out. */
interface Cut {
  readonly isCut: boolean;
  isWhole: boolean;
}

function describePackage(found: PreviewedPackage, out: Output, cut: Cut): string[] {
  const { style } = out;
  const was = found.replaces === undefined ? "" : ` ${style.dim(`(was ${visibleLine(found.replaces)})`)}`;
  const size =
    found.link === undefined ? `${counted(found.files, "file")}, ${kilobytes(found.bytes)}` : `a link to ${out.path(found.link)}`;
  return [
    `${style.bold(visibleLine(found.name))} ${visibleLine(found.version)}${was}  ${style.dim(size)}`,
    ...(found.resolved === undefined || found.link !== undefined ? [] : [`  ${style.dim("from")} ${visibleLine(found.resolved)}`]),
    ...(found.integrity === undefined ? [] : [`  ${style.dim(found.integrity)}`]),
    ...(found.hasScripts ? [`  ${style.yellow("has install scripts, which are not run")}`] : []),
    ...found.skills.flatMap((skill) => describeSkill(skill, out, cut)),
    ...found.changes.flatMap((change) => describeDrift(change, out).map((line) => `  ${line}`)),
  ];
}

function describeSkill(skill: PreviewedSkill, { style }: Output, cut: Cut): string[] {
  const { name = skill.path, description = "", tools = {}, servers = {}, requires = {}, engines = {}, permissions } = skill;
  const pairs = (record: Readonly<Record<string, string>>): string =>
    Object.entries(record)
      .map(([key, value]) => `${key} ${value}`)
      .join(", ");
  return [
    `  ${style.dim("skill")} ${style.bold(visibleLine(name))}${description === "" ? "" : ` — ${shortened(description, cut)}`}`,
    ...permissionLines(permissions).map((line) => `    ${style.yellow(line)}`),
    ...Object.entries(tools).flatMap(([tool, { signature, definition, uses = [] }]) => [
      `    ${style.dim("tool")} ${style.cyan(visibleLine(tool))}  ${style.dim(signature?.slice(0, 12) ?? "")}`.trimEnd(),
      ...definition.map((line) => `      ${shortened(line, cut)}`),
      // In full: this is what is agreed to.
      ...uses.map((line) => `      ${style.yellow(visibleLine(line))}`),
    ]),
    ...Object.entries(servers).map(([server, line]) => `    ${style.yellow("starts the MCP server")} ${visibleLine(`${server}: ${line}`)}`),
    ...(Object.keys(requires).length > 0 ? [`    ${style.dim("needs the skills")} ${visibleLine(pairs(requires))}`] : []),
    ...(Object.keys(engines).length > 0 ? [`    ${style.dim("is for")} ${visibleLine(pairs(engines))}`] : []),
  ];
}

/** What differs, and how. */
export function describeDrift({ subject, message, diff = [] }: Drift, { style }: Output): readonly string[] {
  const paint = (line: string): string => (line.startsWith("+") ? style.green(visibleLine(line)) : style.red(visibleLine(line)));
  return [`${style.yellow("~")} ${visibleLine(subject)} ${message}`, ...diff.map((line) => `    ${paint(line)}`)];
}

export function kilobytes(bytes: number): string {
  return bytes < 1_000 ? `${bytes} bytes` : `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
}

function shortened(text: string, cut: Cut): string {
  const shown = visibleLine(text);
  if (!cut.isCut || shown.length <= 2_000) return shown;
  cut.isWhole = false;
  return `${shown.slice(0, 1_000)} … (${shown.length - 1_300} characters are not shown) … ${shown.slice(-300)}`;
}

import type { SkillInfo } from "../host/host.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./visible-text.ts";

/** `name 1.2.0  active  skills/name` */
export function skillHeading(skill: SkillInfo, { style, path }: Output): string {
  const version = skill.version === undefined ? "" : ` ${visibleLine(skill.version)}`;
  const { green, yellow, red, dim } = style;
  const color = { active: green, disabled: dim, shadowed: yellow, refused: red, untrusted: yellow, failed: red }[skill.state];
  const stale = skill.stale ? ` ${style.red("(stale: the last good generation serves)")}` : "";
  const trust = skill.trust === undefined ? "" : `  ${trustWords(skill.trust, style)}`;
  return `${style.bold(visibleLine(skill.name))}${version}  ${color(skill.state)}${stale}${trust}${packageWords(skill.package, style)}  ${style.dim(path(skill.folder))}`;
}

/** `  of left-pad@1.3.0`: the npm package that a skill came with. */
export function packageWords(found: SkillInfo["package"], style: Output["style"]): string {
  if (found === undefined) return "";
  const version = found.version === undefined ? "" : `@${found.version}`;
  return `  ${style.dim("of")} ${visibleLine(`${found.name}${version}`)}`;
}

/** How a skill's signature stands: `signed by alice@example.com`. */
export function trustWords({ status, key }: NonNullable<SkillInfo["trust"]>, style: Output["style"]): string {
  if (status === "unsigned") return style.dim("unsigned");
  const signer = key === undefined ? "" : ` by ${visibleLine(key.name === "" ? key.id : key.name)}`;
  return status === "signed" ? style.green(`signed${signer}`) : style.red(`signed${signer}, which is not to be believed`);
}

/** What a skill declares that its tools reach, a line for each kind. */
export function permissionLines(permissions: SkillInfo["permissions"]): readonly string[] {
  const { env = [], hosts, programs } = permissions ?? {};
  const line = (what: string, items: readonly string[] | undefined): readonly string[] =>
    items === undefined || items.length === 0 ? [] : [`${what} ${items.map(visibleLine).join(", ")}`];
  return [...line("may send the variables", env), ...line("may call the hosts", hosts), ...line("may run the programs", programs)];
}

/** `1 tool`, `2 tools`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Up to some names, and how many there are beyond. */
export function named(names: readonly string[], most = 6): string {
  const shown = names.slice(0, most).map(visibleLine).join(", ");
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

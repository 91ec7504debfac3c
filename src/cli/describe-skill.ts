import type { SkillInfo } from "../host/host.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./visible-text.ts";

/** `name 1.2.0  active  skills/name` */
export function skillHeading(skill: SkillInfo, { style, path }: Output): string {
  const version = skill.version === undefined ? "" : ` ${visibleLine(skill.version)}`;
  const color = { active: style.green, disabled: style.dim, shadowed: style.yellow, failed: style.red }[skill.state];
  const stale = skill.stale ? ` ${style.red("(stale: the last good generation serves)")}` : "";
  return `${style.bold(visibleLine(skill.name))}${version}  ${color(skill.state)}${stale}  ${style.dim(path(skill.folder))}`;
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

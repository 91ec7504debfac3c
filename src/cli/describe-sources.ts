import { counted } from "../base/text.ts";
import { repositoryLabel } from "../packages/sources/git-source.ts";
import type { PreviewedCopy, PreviewedSource } from "../packages/sources/install-skills.ts";
import { type Cut, describeDrift, describeSkill, kilobytes } from "./describe.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./terminal-style.ts";

const mostDiffLines = 300;

/** Describes skills that are about to be copied into the project, for the user's consent. Long texts are cut unless `isCut` is false. */
export function describeSources(
  sources: readonly PreviewedSource[],
  out: Output,
  { isCut = true }: { readonly isCut?: boolean } = {},
): { readonly lines: readonly string[]; readonly isWhole: boolean } {
  const cut: Cut = { isCut, isWhole: true };
  const lines = sources
    .filter(({ skills }) => skills.some(({ state }) => state !== "same"))
    .flatMap((each) => describeSource(each, out, cut));
  return { lines, isWhole: cut.isWhole };
}

function describeSource(
  { url, ref, commit, was, isMovedTag, warnings, skills }: PreviewedSource,
  out: Output,
  cut: Cut,
): readonly string[] {
  const { style } = out;
  const before = was === undefined ? "" : ` ${style.dim(`(was ${was.slice(0, 12)})`)}`;
  const named = [style.bold(visibleLine(repositoryLabel(url))), visibleLine(ref ?? ""), commit?.slice(0, 12) ?? ""];
  return [
    `${named.filter((part) => part !== "").join(" ")}${before}`,
    `  ${style.dim("from")} ${visibleLine(url)}`,
    ...(commit === undefined ? [] : [`  ${style.dim("commit")} ${commit}`]),
    ...warnings.map((warning) => `  ${style.yellow(visibleLine(warning))}`),
    ...(isMovedTag ? [`  ${style.red("the tag was moved to another commit since it was added; tags normally stay")}`] : []),
    ...skills.filter(({ state }) => state !== "same").flatMap((copy) => describeCopy(copy, out, cut)),
  ];
}

function describeCopy(copy: PreviewedCopy, out: Output, cut: Cut): readonly string[] {
  const { style } = out;
  const { skill, path, state, files, bytes, isEdited, fileChanges, changes } = copy;
  const words = { added: style.green("+"), changed: style.yellow("~"), removed: style.red("-") };
  return [
    ...describeSkill(skill, out, cut),
    `    ${style.dim(state === "new" ? "to" : "replaces")} ${visibleLine(path)}  ${style.dim(`${counted(files, "file")}, ${kilobytes(bytes)}`)}`,
    ...(isEdited && state === "changed" ? [`    ${style.red("its files were changed here; these changes are lost")}`] : []),
    ...changes.flatMap((change) => describeDrift(change, out).map((line) => `    ${line}`)),
    ...fileChanges.flatMap(({ path: file, kind, diff }) => [
      `    ${words[kind]} ${visibleLine(file)}`,
      ...(diff === undefined ? [] : diffLines(diff, out, cut)),
    ]),
  ];
}

function diffLines(diff: string, { style }: Output, cut: Cut): readonly string[] {
  // The first two lines name the file.
  const lines = diff.split("\n").slice(2);
  const shown = cut.isCut ? lines.slice(0, mostDiffLines) : lines;
  if (shown.length < lines.length) cut.isWhole = false;
  const paint = (line: string): string => {
    const text = cut.isCut && line.length > 1_000 ? shortened(line, cut) : visibleLine(line);
    return line.startsWith("+") ? style.green(text) : line.startsWith("-") ? style.red(text) : style.dim(text);
  };
  const rest = lines.length - shown.length;
  return [...shown.map((line) => `      ${paint(line)}`), ...(rest > 0 ? [`      … (${rest} more lines are not shown)`] : [])];
}

function shortened(line: string, cut: Cut): string {
  cut.isWhole = false;
  return `${visibleLine(line.slice(0, 1_000))} … (${line.length - 1_000} characters are not shown)`;
}

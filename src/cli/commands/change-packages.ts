import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { counted } from "../../base/text.ts";
import { installFrozen } from "../../packages/frozen-install.ts";
import { type ChangeOutcome, changePackages, type InstallContext } from "../../packages/install.ts";
import { skillPackages } from "../../packages/lock-project.ts";
import type { Preview } from "../../packages/preview.ts";
import type { TreeRequest } from "../../packages/resolve-tree.ts";
import { type GitSource, parseGitSource } from "../../packages/sources/git-source.ts";
import { isWebSource } from "../../packages/sources/open-web.ts";
import { listDirectDependencies, readManifest } from "../../skills/store/package-skills.ts";
import { logApproval } from "../../trust/approval-log.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { confirm } from "../confirm.ts";
import { describePreview, hasTools, named, packageIsolationLine } from "../describe.ts";
import { didYouMean } from "../did-you-mean.ts";
import { isolationOf, recoveredText } from "../open-host.ts";
import { withPackages } from "../package-context.ts";
import { addBundled, isBundledName } from "../scaffold/copy-skill.ts";
import { visibleLine } from "../terminal-style.ts";
import { addCopies, type CopiesChange, type CopyCommandOptions, changeCopies, noCopies } from "./copy-skills.ts";
import { reportDrift, totals } from "./lock.ts";

export interface ChangeCommandOptions extends CopyCommandOptions {
  readonly exact?: boolean;
  readonly latest?: boolean;
}

type Command = "add" | "remove" | "update";

/** Adds, removes or updates packages: shows the effects, asks for confirmation, and applies all changes or none. */
export async function changeCommand(
  context: CommandContext,
  command: Command,
  names: readonly string[],
  options: ChangeCommandOptions,
): Promise<number> {
  const { out } = context;
  if (command === "add") {
    if (names.some(isBundledName)) return addBundled(context, names, options);
    const sources = sourcesOf(names, options);
    for (const name of names)
      if (isAlsoFolder(name, context)) context.out.note(`${name} is a repository of GitHub. For the folder, write ./${name}.`);
    const exitCode = sources && (await addCopies(context, sources, options));
    if (exitCode !== undefined) return exitCode;
    if (options.skill !== undefined) throw packageWithSkills();
  }
  return withPackages(context, options, async (packages) => {
    const copies = command === "add" ? noCopies : await changeCopies(context, packages, { command, names, options });
    if (copies.exitCode !== undefined) return copies.exitCode;
    const request = toRequest(
      command,
      names.filter((name) => !copies.names.includes(name)),
      options,
      context,
      packages,
    );
    if (request === undefined) {
      out.envelope({ ok: true, data: { ...nothingDone, ...copies.data }, diagnostics: copies.diagnostics });
      if (!out.isJson) out.line("No installed package contains skills.");
      return 0;
    }
    const outcome = await changePackages({
      ...packages,
      request,
      needsSkills: command === "add",
      confirm: async (preview, diagnostics) => {
        const shown = describePreview(preview, out);
        if (!out.isJson) {
          for (const line of shown.lines) out.line(line);
          for (const diagnostic of diagnostics) out.line(out.diagnostic(diagnostic));
          if (preview.packages.some(({ skills }) => skills.some(hasTools))) out.line(await packageIsolationLine(isolationOf(context)));
        }
        const whole = shown.isWhole ? undefined : () => describePreview(preview, out, { isCut: false }).lines;
        const question = { question: "Install it?", otherwise: "Review it, then run again with --yes to install it.", whole };
        const isAgreed = command === "remove" || options.yes === true || (await confirm(context, question));
        if (isAgreed) logPackages(preview, packages, `skillhost ${command}${options.yes === true ? " --yes" : ""}`);
        return isAgreed;
      },
    });
    return report(context, outcome, packages, copies);
  });
}

function logPackages({ packages, removed }: Preview, { project }: InstallContext, by: string): void {
  const scope = project.scope === "user" ? ({ kind: "user" } as const) : ({ kind: "location", id: project.folder } as const);
  for (const { name, version, integrity } of packages)
    logApproval({ action: "approved", kind: "package", id: `${name}@${version}`, digest: integrity, scope, by });
  for (const name of removed) logApproval({ action: "revoked", kind: "package", id: name, scope, by });
}

function isAlsoFolder(name: string, { io }: CommandContext): boolean {
  return /^[\w.-]+\/[\w./-]+$/.test(name) && !/^\.|\.t(?:ar\.)?gz$/.test(name) && existsSync(join(io.cwd, name));
}

/** Undefined: the names are those of packages. A web address can be one, too. */
function sourcesOf(names: readonly string[], { skill, exact }: ChangeCommandOptions): readonly (GitSource | string)[] | undefined {
  const sources = names.map((name) => parseGitSource(name) ?? (isWebSource(name) ? name : undefined));
  const found = sources.filter((source) => source !== undefined);
  if (found.length === 0 && skill !== undefined) throw packageWithSkills();
  if (found.length === 0) return undefined;
  const isOfPackages = (source: GitSource | string | undefined): boolean => source === undefined || typeof source === "string";
  // As npm's own: several tarballs, or tarballs and names.
  if (names.length > 1 && sources.every(isOfPackages)) return undefined;
  if (found.length < sources.length) {
    const other = names[sources.indexOf(undefined)];
    throw usageError(
      `${other} is not a Git repository, and packages and repositories cannot be added by the same command. Run it once for each.`,
    );
  }
  if (exact === true && sources.some((source) => !isOfPackages(source)))
    throw usageError("--exact is for packages. The lock file has the exact commit of a Git repository in any case.");
  return found;
}

function packageWithSkills(): CliError {
  return usageError("--skill chooses skills of a Git repository or website. A package is added with all of its skills.");
}

const nothingDone = { changed: false, packages: [], dependencies: [], removed: [] };

function toRequest(
  command: Command,
  names: readonly string[],
  { exact, latest }: ChangeCommandOptions,
  { io }: CommandContext,
  { project: { folder } }: InstallContext,
): TreeRequest | undefined {
  if (command === "add") {
    const add = names.map((name) => toSpec(name, io.cwd));
    return { add, ...(exact === true && { saveExact: true }) };
  }
  const known = listDirectDependencies(folder).packages.map(({ name }) => name);
  for (const name of names) if (!known.includes(name)) throw unknown(name, known);
  if (command === "remove") return { remove: names };
  const chosen = names.length > 0 ? names : skillPackages(folder).flatMap(({ installed }) => (installed.isLink ? [] : [installed.name]));
  if (chosen.length === 0) return undefined;
  return latest === true ? { add: chosen.map((name) => `${name}@latest`) } : { update: chosen };
}

/** Interprets a specification as npm does: text that begins like a path is a path. */
function toSpec(given: string, cwd: string): string {
  const isPath = /^(?:\.{1,2}(?:[\\/]|$)|~[\\/]|file:)/.test(given) || isAbsolute(given) || /\.t(?:ar\.)?gz$/.test(given);
  if (!isPath || /^https?:/.test(given)) return given;
  const path = resolve(cwd, given.replace(/^file:/, "").replace(/^~(?=[\\/])/, homedir()));
  if (!existsSync(path)) throw new CliError("PACKAGE_FOLDER", `${path} does not exist.`, 1);
  if (statSync(path).isDirectory() && !existsSync(join(path, "package.json"))) {
    const message = `${path} has no package.json, so npm cannot install it. Run "skillhost pack" to create one, or move the folder into ./skills, where it needs none.`;
    throw new CliError("PACKAGE_FOLDER", message, 1);
  }
  if (statSync(path).isDirectory()) assertNamed(path);
  return `file:${path}`;
}

/** npm links a folder under the name in its package.json. */
function assertNamed(path: string): void {
  const { name } = readManifest(path);
  if (typeof name === "string" && name.trim() !== "") return;
  const message = `${join(path, "package.json")} has no "name", so npm cannot install the folder. Add one, such as "my-skills".`;
  throw new CliError("PACKAGE_FOLDER", message, 1);
}

function unknown(name: string, known: readonly string[]): CliError {
  return new CliError("PACKAGE_UNKNOWN", `"${name}" is not an installed dependency of this project.${didYouMean(name, known)}`, 1);
}

function report({ out }: CommandContext, outcome: ChangeOutcome, { project }: InstallContext, copies: CopiesChange): number {
  if (outcome.recovered.length > 0) {
    out.note(recoveredText(outcome.recovered));
  }
  if (outcome.kind === "unchanged") {
    out.envelope({ ok: true, data: { ...nothingDone, ...copies.data }, diagnostics: copies.diagnostics });
    if (!out.isJson) out.line("Already up to date.");
    return 0;
  }
  const { preview, diagnostics } = outcome;
  if (outcome.kind === "declined") {
    const error = { code: "NOT_AGREED", message: "Nothing was installed." };
    if (out.isJson) out.envelope({ ok: false, data: { changed: false, ...preview, ...copies.data }, diagnostics, error });
    else out.complain(error.message);
    return 1;
  }
  if (out.isJson)
    out.envelope({
      ok: true,
      data: { ...copies.data, changed: true, folder: project.folder, ...preview },
      diagnostics: [...copies.diagnostics, ...diagnostics],
    });
  else for (const line of done(preview)) out.line(line);
  out.note(
    `Written: ${["package.json", "package-lock.json", "skillhost-lock.json"].map((file) => out.path(join(project.folder, file))).join(", ")}.`,
  );
  return 0;
}

function done({ packages, dependencies, removed }: Preview): readonly string[] {
  const named = packages.map(({ name, version }) => visibleLine(`${name}@${version}`));
  const more = dependencies.length > 0 ? ` with ${counted(dependencies.length, "dependency").replace(/ys$/, "ies")}` : "";
  if (named.length + removed.length + dependencies.length === 0) return ["Already installed."];
  return [
    ...(named.length > 0 ? [`Installed ${named.join(", ")}${more}.`] : []),
    ...(removed.length > 0 ? [`Removed ${removed.map(visibleLine).join(", ")}.`] : []),
  ];
}

/** Installs exactly what the lock files state. Any difference prevents the installation, with exit code 1. */
export async function ci(context: CommandContext): Promise<number> {
  const outcome = await withPackages(context, {}, installFrozen);
  const { installed, copied } = outcome;
  const done = [
    ...(installed.length > 0 ? [`Installed ${installed.length} of package-lock.json.`] : []),
    ...(copied.length > 0 ? [`Copied ${named(copied)}.`] : []),
  ];
  const what = done.length === 0 ? "Nothing had to be installed." : done.join(" ");
  return reportDrift(context, outcome, `${what} ${totals(outcome)} verified against skillhost-lock.json.`, { installed, copied });
}

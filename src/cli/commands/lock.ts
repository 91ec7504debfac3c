import { counted } from "../../base/text.ts";
import { compareLocks, countsOf, needLock, type VerifyOutcome, verifyProject } from "../../packages/compare-locks.ts";
import { type InstallContext, waitingText } from "../../packages/install.ts";
import { lockFileName, readLock, sourcesOf, writeLock } from "../../packages/lock-file.ts";
import { lockProject } from "../../packages/lock-project.ts";
import { claimProject } from "../../packages/package-project.ts";
import { findRemoteDrift } from "../../packages/sources/remote-drift.ts";
import type { CommandContext } from "../command-context.ts";
import { describeDrift } from "../describe.ts";
import { settleFolder } from "../open-host.ts";
import type { Output } from "../output.ts";
import { type PackageOptions, withPackages } from "../package-context.ts";

/** Writes the lock file, and reports the differences from the previous one. */
export function lock(context: CommandContext, options: PackageOptions): Promise<number> {
  return withPackages(context, options, async (packages) => {
    const claim = await claimProject(packages.project, {
      signal: packages.signal,
      manager: "any",
      onWait: () => packages.onProgress(waitingText),
    });
    try {
      return await writeDown(context, packages, options);
    } finally {
      claim[Symbol.dispose]();
    }
  });
}

async function writeDown(context: CommandContext, packages: InstallContext, options: PackageOptions): Promise<number> {
  const { out } = context;
  const { folder } = packages.project;
  const before = readLock(folder);
  // With --run everything is read again, because running modules may reveal more.
  const after = await lockProject(folder, {
    ...packages,
    before: options.run === true ? undefined : before,
    sources: sourcesOf(before),
    onRead: progress(context),
  });
  await writeLock(folder, after);
  const changes = compareLocks(before ?? { packages: {}, skills: {} }, after);
  const counts = countsOf(after);
  if (out.isJson) out.envelope({ ok: true, data: { ...counts, changes }, diagnostics: [] });
  else {
    if (before !== undefined) for (const change of changes) for (const line of describeDrift(change, out)) out.line(line);
    out.line(`${totals(counts)} locked${before !== undefined && changes.length === 0 ? ", unchanged" : ""}.`);
    out.note(`Written: ${out.path(`${folder}/${lockFileName}`)}.`);
  }
  return 0;
}

export interface VerifyOptions extends PackageOptions {
  /** Also asks the repositories of copied skills what their refs name now. */
  readonly remote?: boolean;
}

/** Compares the project with the lock file. The exit code is 1 when anything differs. */
export async function verify(context: CommandContext, options: VerifyOptions): Promise<number> {
  const outcome = await withPackages(context, options, async (packages) => {
    const { folder } = packages.project;
    await settleFolder(folder, context);
    const found = await verifyProject(folder, { ...packages, runs: options.run === true, onRead: progress(context) });
    const moved = options.remote === true ? await findRemoteDrift(needLock(folder), packages) : [];
    if (moved.length > 0) context.out.note('To review what branches and tags name now, run "skillhost update".');
    return { ...found, drift: [...found.drift, ...moved] };
  });
  return reportDrift(context, outcome, `${totals(outcome)} verified against skillhost-lock.json.`, {});
}

/** Reports the differences from the lock file, or success. */
export function reportDrift({ out }: CommandContext, outcome: VerifyOutcome, success: string, data: object): number {
  const { drift, ...counts } = outcome;
  const ok = drift.length === 0;
  const error = { code: "PACKAGES_DRIFT", message: `${counted(drift.length, "difference")} from skillhost-lock.json.` };
  if (out.isJson) out.envelope({ ok, data: { ...counts, drift, ...data }, diagnostics: [], ...(!ok && { error }) });
  else if (ok) out.line(success);
  else {
    for (const each of drift) for (const line of describeDrift(each, out)) out.line(line);
    out.complain(`${error.message} Find out where they come from. If you accept them, run "skillhost lock" to record the current state.`);
  }
  return ok ? 0 : 1;
}

export function totals({ packages, skills, files }: Pick<VerifyOutcome, "packages" | "skills" | "files">): string {
  return `${counted(skills, "skill")} (${counted(packages, "package")}, ${counted(files, "file")})`;
}

/** Reports progress from time to time while much is read. */
function progress({ out }: { readonly out: Output }): () => void {
  let [done, reportedAt] = [0, performance.now()];
  return () => {
    done++;
    if (performance.now() - reportedAt < 1_000) return;
    reportedAt = performance.now();
    out.note(`${done} read…`);
  };
}

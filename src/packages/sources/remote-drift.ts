import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import type { Drift } from "../compare-locks.ts";
import type { InstallContext } from "../install.ts";
import { copiedSkills, type PackagesLock } from "../lock-file.ts";
import { findRemoteCommit, initRepository } from "./git-repository.ts";
import { assertFetchable, isCommit, repositoryLabel } from "./git-source.ts";

/**
 * The copied skills whose branch or tag names another commit than the lock file has. Asks each repository once.
 * @throws HostError `GIT_MISSING`, `GIT_FETCH`, `PACKAGE_NOT_ALLOWED`.
 */
export async function findRemoteDrift(
  lock: PackagesLock,
  { signal, checkSource }: Pick<InstallContext, "signal" | "checkSource">,
): Promise<readonly Drift[]> {
  const copies = copiedSkills(lock).filter(({ source: { kind, ref } }) => kind === "git" && (ref === undefined || !isCommit(ref)));
  if (copies.length === 0) return [];
  const folder = await mkdtemp(join(tmpdir(), "skillhost-git-"));
  try {
    await initRepository(folder, signal);
    const known = new Map<string, string | undefined>();
    const drift: Drift[] = [];
    for (const { path, source } of copies) {
      assertFetchable(source);
      const { url, ref, commit } = source;
      const fault = checkSource({ name: repositoryLabel(url), address: url });
      if (fault !== undefined) throw new HostError("PACKAGE_NOT_ALLOWED", `${path}: ${fault}`);
      const key = `${url}\0${ref ?? ""}`;
      if (!known.has(key)) known.set(key, await findRemoteCommit(folder, source, signal));
      const now = known.get(key);
      // An abbreviated commit is not a ref.
      if (now === commit || (now === undefined && ref !== undefined && commit?.startsWith(ref) === true)) continue;
      const what = ref === undefined ? "the default branch" : JSON.stringify(ref);
      const message =
        now === undefined ? `comes from ${what} of ${url}, which no longer exists` : `comes from ${what} of ${url}, which has moved`;
      drift.push({ kind: "source", subject: path, message, diff: [`- ${commit}`, ...(now === undefined ? [] : [`+ ${now}`])] });
    }
    return drift;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import { megabytes } from "../entry-rules.ts";
import { ByteReader } from "./byte-reader.ts";
import { runGit, startGit } from "./git-program.ts";
import { type GitSource, isCommit } from "./git-source.ts";

export interface GitLimits {
  /** The limit for what is fetched, in bytes. */
  readonly fetchedBytes: number;
  /** The limit for the files of the repository, or of the named folder. */
  readonly entries: number;
}

const gitLimits: GitLimits = { fetchedBytes: 256 * 1024 * 1024, entries: 200_000 };

/** An entry of a tree, without those that are folders. */
export interface TreeEntry {
  readonly kind: "file" | "link" | "submodule";
  readonly isExecutable: boolean;
  readonly id: string;
  readonly size: number;
  /** From the top of the repository, with forward slashes. */
  readonly path: string;
}

interface FetchOptions {
  /** An empty folder for the repository. */
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly limits?: GitLimits;
}

/**
 * Fetches one commit into a bare repository of its own. Nothing is checked out, so neither attributes nor filters, hooks or submodules
 * have any effect.
 * @throws HostError `GIT_MISSING`, `GIT_FETCH`, `GIT_REF`, `GIT_SIZE`.
 */
export async function fetchRepository(source: GitSource, { folder, signal, limits = gitLimits }: FetchOptions): Promise<GitRepository> {
  await initRepository(folder, signal);
  const { ref = "HEAD" } = source;
  const shallow = await fetchInto(folder, source, ["--depth=1", "--", source.url, ref], { signal, limits });
  // Servers may refuse a commit that no branch or tag names, and know no abbreviated ones.
  const isId = /^[0-9a-f]{7,64}$/.test(ref);
  if (shallow !== undefined && isId) {
    const all = await fetchInto(folder, source, ["--", source.url, "+refs/*:refs/fetched/*"], { signal, limits });
    if (all !== undefined) throw explained(source, all);
  } else if (shallow !== undefined) throw explained(source, shallow);
  const wanted = shallow === undefined ? "FETCH_HEAD" : ref;
  const resolved = await runGit(folder, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${wanted}^{commit}`], signal);
  const commit = resolved.stdout.trim();
  if (resolved.code !== 0 || !isCommit(commit)) throw noSuchRef(source);
  const head = shallow === undefined ? await readFile(join(folder, "FETCH_HEAD"), "utf8") : "";
  return new GitRepository(folder, { commit, isTag: /^\S+\t[^\t]*\ttag '/.test(head), limits });
}

/** Makes an empty bare repository. @throws HostError `GIT_MISSING`, `GIT_FETCH`. */
export async function initRepository(folder: string, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true });
  const { code, stderr } = await runGit(folder, ["init", "--quiet", "--bare", "--template=", folder], signal);
  if (code !== 0) throw new HostError("GIT_FETCH", `git could not make a repository in ${folder}: ${stderr}`);
}

/** The commit that a ref of a repository names now. Undefined: it has no such branch or tag. @throws HostError `GIT_FETCH` */
export async function findRemoteCommit(folder: string, source: GitSource, signal: AbortSignal): Promise<string | undefined> {
  const { url, ref = "HEAD" } = source;
  const { code, stdout, stderr } = await runGit(folder, ["ls-remote", "--quiet", "--", url, ref, `${ref}^{}`], signal);
  if (code !== 0) throw failed(source, stderr);
  const found = new Map(stdout.split("\n").map((line) => [line.split("\t")[1], line.split("\t")[0]]));
  // In git's order. "^{}": the commit of an annotated tag.
  const names = [ref, `refs/${ref}`, `refs/tags/${ref}`, `refs/heads/${ref}`].flatMap((name) => [`${name}^{}`, name]);
  return names.map((name) => found.get(name)).find((commit) => commit !== undefined);
}

/** Returns what git reported if it failed. */
async function fetchInto(
  folder: string,
  source: GitSource,
  args: readonly string[],
  { signal, limits }: { readonly signal: AbortSignal; readonly limits: GitLimits },
): Promise<string | undefined> {
  // git has no limit of its own for what it receives.
  const tooMuch = new AbortController();
  const waiting = onAbort(signal, () => tooMuch.abort(signal.reason));
  const look = async (): Promise<void> => {
    if ((await sizeOf(folder)) > limits.fetchedBytes) tooMuch.abort(tooLarge(source, limits));
  };
  let looking: Promise<void> | undefined;
  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
  }, 100);
  try {
    const options = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance"];
    const { code, stderr } = await runGit(folder, ["fetch", ...options, ...args], tooMuch.signal);
    await look();
    tooMuch.signal.throwIfAborted();
    return code === 0 ? undefined : stderr;
  } finally {
    clearInterval(timer);
    waiting[Symbol.dispose]();
    await looking;
  }
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A fetched commit. */
export class GitRepository {
  readonly commit: string;
  /** The ref is a tag, which normally does not move. */
  readonly isTag: boolean;
  readonly #folder: string;
  readonly #limits: GitLimits;

  constructor(folder: string, found: { readonly commit: string; readonly isTag: boolean; readonly limits: GitLimits }) {
    this.#folder = folder;
    this.commit = found.commit;
    this.isTag = found.isTag;
    this.#limits = found.limits;
  }

  /** Lists all files below a folder, sorted by path. @throws HostError `GIT_SIZE` */
  async list(path: string | undefined, signal: AbortSignal): Promise<readonly TreeEntry[]> {
    const args = ["ls-tree", "-r", "-z", "-l", "--full-tree", this.commit, ...(path === undefined ? [] : [`${path}/`])];
    const entries: TreeEntry[] = [];
    await this.#read(args, "", signal, async (reader) => {
      for (let record = await reader.until(0); record !== undefined; record = await reader.until(0)) {
        entries.push(toEntry(record));
        // A few small trees can name each other so often that the list never ends.
        if (entries.length > this.#limits.entries) throw tooMany(this.#limits);
      }
    });
    return entries;
  }

  /** Reads the content of files, one after the other. */
  async readFiles(
    entries: readonly TreeEntry[],
    signal: AbortSignal,
    use: (entry: TreeEntry, bytes: Buffer) => Promise<void>,
  ): Promise<void> {
    if (entries.length === 0) return;
    await this.#read(["cat-file", "--batch"], entries.map(({ id }) => `${id}\n`).join(""), signal, async (reader) => {
      for (const entry of entries) {
        const header = (await reader.until(10))?.toString("latin1");
        if (header !== `${entry.id} blob ${entry.size}`)
          throw new HostError("GIT_FETCH", `git cannot read ${entry.path} of commit ${this.commit}.`);
        await use(entry, await reader.take(entry.size));
        await reader.take(1);
      }
    });
  }

  async #read(args: readonly string[], stdin: string, signal: AbortSignal, use: (reader: ByteReader) => Promise<void>): Promise<void> {
    signal.throwIfAborted();
    await using git = await startGit(this.#folder, args);
    using _ = onAbort(signal, () => void git.stop());
    git.stdin.end(stdin);
    git.stderr.resume();
    try {
      await use(new ByteReader(git.stdout));
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
    signal.throwIfAborted();
    const { code } = await git.ended;
    if (code !== 0) throw new HostError("GIT_FETCH", `git cannot read commit ${this.commit} (${args[0]} ended with ${code}).`);
  }
}

/** `<mode> <type> <id> <size>\t<path>`, with spaces before the size. */
function toEntry(record: Buffer): TreeEntry {
  const tab = record.indexOf(9);
  const [mode, , id, size] = record.toString("latin1", 0, tab).split(/ +/);
  const kind = mode === "120000" ? "link" : mode === "160000" ? "submodule" : "file";
  return { kind, isExecutable: mode === "100755", id: id!, size: Number(size) || 0, path: record.toString("utf8", tab + 1) };
}

function explained(source: GitSource, stderr: string): HostError {
  return /couldn't find remote ref|not our ref|unadvertised object|bad object/i.test(stderr) ? noSuchRef(source) : failed(source, stderr);
}

function noSuchRef({ url, ref }: GitSource): HostError {
  const what = ref === undefined ? "has no commit yet" : `has no branch, tag or commit ${JSON.stringify(ref)}`;
  return new HostError("GIT_REF", `The repository ${url} ${what}. "git ls-remote ${url}" lists what it has.`);
}

function failed({ url }: GitSource, stderr: string): HostError {
  const lines = stderr.split("\n").filter((line) => line !== "");
  const why = lines.find((line) => line.startsWith("fatal:")) ?? lines.at(-1) ?? "it gave no reason";
  const advice = "If the repository is private, sign in with git first: nothing is asked here.";
  return new HostError("GIT_FETCH", `git could not fetch ${url}: ${why.replace(/^fatal: /, "").replace(/\.?$/, ".")} ${advice}`);
}

function tooLarge({ url }: GitSource, { fetchedBytes }: GitLimits): HostError {
  return new HostError("GIT_SIZE", `The repository ${url} is larger than ${megabytes(fetchedBytes)}, so it was not fetched.`);
}

function tooMany({ entries }: GitLimits): HostError {
  return new HostError("GIT_SIZE", `The repository has more than ${entries} files. Name the folder of the skills: owner/repo/folder.`);
}

import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";

/** What a git command does. */
export interface GitUse {
  /** The folder of the repository; undefined: there is none. */
  readonly repository: string | undefined;
  /** Paths that its words name within revisions, such as `HEAD:src/key`. */
  readonly paths: readonly string[];
  /** It shows what files contain. */
  readonly shows: boolean;
  readonly connects: boolean;
  /** It changes what the repository knows of. */
  readonly records: boolean;
  /** It replaces files, perhaps by links. */
  readonly replaces: boolean;
  readonly doubt: string | undefined;
}

const namesOnly: ReadonlySet<string> = new Set(
  "status branch remote worktree rev-parse ls-files ls-tree describe tag rev-list merge-base symbolic-ref for-each-ref count-objects check-ignore init add rm mv log shortlog reflog stash config".split(
    " ",
  ),
);

const showing: ReadonlySet<string> = new Set("diff show blame annotate grep cat-file whatchanged".split(" "));

const replacing: ReadonlySet<string> = new Set("checkout switch restore reset merge rebase cherry-pick revert commit".split(" "));

const connecting: ReadonlySet<string> = new Set("fetch push pull ls-remote".split(" "));

// git accepts any prefix of a long option for the option, so only a list of what is known is safe.
const longOptions =
  /^--(?:stat|shortstat|numstat|summary|name-only|name-status|cached|staged|oneline|graph|all|decorate|format|pretty|date|author|since|until|after|before|max-count|abbrev-commit|abbrev|no-color|color|patch|unified|word-diff|no-merges|merges|first-parent|follow|reverse|grep|short|branch|porcelain|ignored|untracked-files|show-toplevel|show-current|abbrev-ref|verify|symbolic-full-name|git-dir|is-inside-work-tree|amend|no-edit|no-verify|message|force|force-with-lease|set-upstream|tags|prune|quiet|verbose|hard|soft|mixed|keep|abort|continue|skip|ff-only|no-ff|squash|rebase|delete|list|contains|merged|no-merged|sort|count|exclude-standard|others|error-unmatch|find-renames|ignore-all-space|ignore-space-change|line-number|ignore-case|files-with-matches|get|get-all|get-regexp|local|allow-empty|signoff|source|worktree|theirs|ours|detach|orphan|track|update|dry-run|diff-filter|no-renames|remotes|heads|symref)(?:=.*)?$/s;

/** What git does with these words in a folder; a word is undefined when it is known only when the line runs. */
export function gitUse(words: readonly (string | undefined)[], folder: string): GitUse {
  const known = words.filter((word) => word !== undefined);
  const [command = "", ...options] = known[0] === "--no-pager" ? known.slice(1) : known;
  const repository = repositoryOf(folder);
  const isPatch = options.some((option) => /^-[a-zA-Z]*[puLUSGv]|^--(?:patch|unified|word-diff|verbose)/.test(option));
  const [first = ""] = options;
  return {
    repository,
    paths: known
      .flatMap((word) => /^[^:]*:(?!\/\/)(.+)$/s.exec(word)?.[1] ?? [])
      .flatMap((path) => (repository === undefined ? path : [path, join(repository, path)])),
    shows: showing.has(command) || (isPatch && !/^(?:branch|remote|fetch|push|ls-remote|rev-parse)$/.test(command)),
    connects: connecting.has(command) || (command === "remote" && /^(?:show|update|prune)$/.test(first)),
    records: /^(?:add|commit)$/.test(command),
    replaces: (replacing.has(command) && command !== "commit") || /^(?:rm|mv|stash|pull)$/.test(command),
    doubt: doubtOf(command, options, { hasUnknown: known.length < words.length, repository }),
  };
}

interface Circumstances {
  readonly hasUnknown: boolean;
  readonly repository: string | undefined;
}

function doubtOf(command: string, options: readonly string[], { hasUnknown, repository }: Circumstances): string | undefined {
  if (command === "" || command.startsWith("-")) return "git with options before its command may run anything";
  if (![namesOnly, showing, replacing, connecting].some((set) => set.has(command))) return `git ${command} may access anything`;
  const option = options.find((each) => isDoubtful(each, command));
  if (option !== undefined) return `git ${command} with ${JSON.stringify(option.slice(0, 50))} may access anything`;
  if (hasUnknown) return `git ${command} gets a value that is known only when the line runs`;
  if (command === "worktree" && options[0] !== "list") return "git worktree creates files that were not checked";
  if (command === "config" && !/^(?:--get|--get-all|--list|-l)$/.test(options[0] ?? "")) return "git config may change what git runs";
  if (repository === undefined) return showing.has(command) ? `git ${command} outside of a repository reads files` : undefined;
  return configurationDoubt(repository) ?? (replacing.has(command) || connecting.has(command) ? hookDoubt(repository) : undefined);
}

function isDoubtful(option: string, command: string): boolean {
  if (option === "--") return false;
  if (option.startsWith("--")) return !longOptions.test(option);
  if (option.startsWith("-")) {
    if (command === "commit") return /^-[a-zA-Z]*[SF]/.test(option) && !option.startsWith("-m");
    return /^-[OFxe]/.test(option) || (command === "rebase" && option.startsWith("-i")) || (command === "stash" && /^-[ua]/.test(option));
  }
  // Two paths of which one is outside of the repository are compared as folders are.
  return showing.has(command) && /^[/~]|(?:^|\/)\.\.(?:\/|$)/.test(option);
}

/** Settings of a repository by which git runs programs or reads other files. */
function configurationDoubt(repository: string): string | undefined {
  const file = join(gitFolder(repository), "config");
  const text = readText(file);
  if (text === undefined) return undefined;
  return /fsmonitor|hookspath|sshcommand|textconv|external|pager|editor|helper|include|alias|filter|process|gpg|askpass|command|driver|cmd|worktree|attributesfile/i.test(
    text,
  )
    ? "the configuration of the repository may have git run programs"
    : undefined;
}

function hookDoubt(repository: string): string | undefined {
  try {
    const hooks = readdirSync(join(gitFolder(repository), "hooks")).filter((name) => !name.endsWith(".sample"));
    return hooks.length === 0 ? undefined : `the hook ${hooks[0]} of the repository may access anything`;
  } catch {
    // There are no hooks.
    return undefined;
  }
}

function repositoryOf(folder: string): string | undefined {
  for (let at = realFolder(folder); ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
    if (dirname(at) === at) return undefined;
  }
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    // There is no such folder, and so no repository of its own.
    return resolve(folder);
  }
}

/** Where a repository keeps what it has in common with its worktrees. */
function gitFolder(repository: string): string {
  const own = ownGitFolder(repository);
  const common = readText(join(own, "commondir"))?.trim();
  return common === undefined ? own : resolve(own, common);
}

function ownGitFolder(repository: string): string {
  const path = join(repository, ".git");
  const [, target] = /^gitdir: (.+)$/m.exec(readText(path) ?? "") ?? [];
  if (target === undefined) return path;
  return isAbsolute(target) ? target : resolve(repository, target);
}

const maxTextBytes = 1024 * 1024;

function readText(file: string): string | undefined {
  try {
    const stats = statSync(file);
    return stats.isFile() && stats.size <= maxTextBytes ? readFileSync(file, "utf8") : undefined;
  } catch {
    // It is not there.
    return undefined;
  }
}

const maxIndexBytes = 8 * 1024 * 1024;

/** The paths that a repository keeps the contents of, from its folder. Undefined: its index is in a form that is not read. */
export function trackedPaths(repository: string): readonly string[] | undefined {
  let index: Buffer;
  try {
    const file = join(ownGitFolder(repository), "index");
    if (statSync(file).size > maxIndexBytes) return undefined;
    index = readFileSync(file);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : undefined;
  }
  return index.length > 12 && index.toString("latin1", 0, 4) === "DIRC" ? readEntries(index) : undefined;
}

/** gitformat-index(5): entries of 62 bytes, or 64 for extended ones, and a name, padded to eight bytes with NULs. */
function readEntries(index: Buffer): readonly string[] | undefined {
  const version = index.readUInt32BE(4);
  if (version !== 2 && version !== 3) return undefined;
  const paths: string[] = [];
  let at = 12;
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    if (at + 62 > index.length) return undefined;
    const isExtended = version === 3 && (index.readUInt16BE(at + 60) & 0x4000) !== 0;
    const start = at + (isExtended ? 64 : 62);
    const end = index.indexOf(0, start);
    if (end === -1) return undefined;
    paths.push(index.toString("utf8", start, end));
    at += Math.ceil((end - at + 1) / 8) * 8;
  }
  // An index that is split keeps its entries elsewhere.
  return index.toString("latin1", at, at + 4) === "link" ? undefined : paths;
}

import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";

/** What is known of a program: which options it may have for that to hold, and what it does with its other words. */
export interface ShellProgram {
  /** Any other option makes it a program of which nothing is known. */
  readonly options: RegExp;
  /** `none`: its words are no files. `read`, `write`: they are files that it reads or changes. `copy`: the last one is changed, the others read. */
  readonly operands: "none" | "read" | "write" | "copy";
  /** With such an option (or in any case) it goes through all that is below its operands. */
  readonly recursive?: RegExp | true;
  /** It follows links that it meets on the way. */
  readonly followsLinks?: RegExp | true;
  /** It passes over names that begin with a dot, unless an option says otherwise. */
  readonly showsHidden?: RegExp;
  /** Without operands it is about the working directory. */
  readonly startsHere?: true;
  /** Options that take none of the words behind them as their value. Absent: none does. */
  readonly flags?: RegExp;
  /** Its first operand is no file but a text, which must be like this, as must be each operand behind an option. */
  readonly text?: RegExp;
  /** Options with which that text is none of the operands. */
  readonly textOption?: RegExp;
  /** No word may be like this. */
  readonly refused?: RegExp;
  /** It makes new names for files that exist: what is reached by a link in them is reached by other names afterwards. */
  readonly renames?: true;
  /** It opens connections, and only to what its words name. Absent: it opens none. */
  readonly connects?: true;
  /** Words with which it may connect to something else as well: it follows redirects, or has patterns of its own. */
  readonly elsewhere?: RegExp;
}

/** Of a program that does the same whatever its options are. */
export const anyOption: RegExp = /^/;
const none = /^(?!)/;

/** Programs whose words are no files, with any words. */
const plainNames =
  ": true false echo pwd exit return break continue shift sleep seq yes expr basename dirname whoami id groups arch nproc uptime tty which type kill umask ulimit printenv clear tput tr ps df free logname fi done }";

const files = (options: RegExp, more: Partial<ShellProgram> = {}): ShellProgram => ({ options, operands: "read", ...more });
const changes = (options: RegExp, more: Partial<ShellProgram> = {}): ShellProgram => ({ options, operands: "write", ...more });

const shortLong = (letters: string, ...long: readonly string[]): RegExp =>
  new RegExp(`^(?:-|-[${letters}]+\\d*${long.length === 0 ? "" : `|--(?:${long.join("|")})(?:=.*)?`})$`);

const lsOptions = shortLong(
  "1aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ",
  "all",
  "almost-all",
  "color",
  "full-time",
  "group-directories-first",
  "human-readable",
  "recursive",
  "sort",
  "time-style",
  "classify",
  "size",
  "reverse",
);
const grepOptions = shortLong(
  "abcEFGhHilLnoPqrRsvwxyzABCem",
  "color",
  "colour",
  "include",
  "exclude",
  "exclude-dir",
  "recursive",
  "line-number",
  "ignore-case",
  "word-regexp",
  "count",
  "files-with-matches",
  "files-without-match",
  "only-matching",
  "invert-match",
  "extended-regexp",
  "fixed-strings",
  "perl-regexp",
  "no-filename",
  "with-filename",
  "max-count",
  "context",
  "after-context",
  "before-context",
  "quiet",
  "no-messages",
  "dereference-recursive",
  "regexp",
);
const grep: ShellProgram = files(grepOptions, {
  recursive: /^-[a-zA-Z]*[rR]|^--(?:dereference-)?recursive$/,
  followsLinks: /^-[a-zA-Z]*R|^--dereference-recursive$/,
  startsHere: true,
  flags:
    /^-[abcEFGhHilLnoPqrRsvwxyzU]*(?:[ABCm]\d+)?$|=|^--(?:colou?r|recursive|dereference-recursive|line-number|ignore-case|word-regexp|count|files-with-matches|only-matching|invert-match|extended-regexp|fixed-strings|perl-regexp|no-filename|with-filename|quiet)$/,
  text: anyOption,
  textOption: /^-[a-zA-Z]*e$|^--regexp/,
});
const searchOptions = shortLong(
  "abcFgHhilLnNopqsSvwxUzABCemtTu.",
  "color",
  "colors",
  "glob",
  "iglob",
  "type",
  "type-not",
  "hidden",
  "no-ignore",
  "no-ignore-vcs",
  "line-number",
  "no-line-number",
  "ignore-case",
  "smart-case",
  "word-regexp",
  "count",
  "count-matches",
  "files",
  "files-with-matches",
  "files-without-match",
  "only-matching",
  "invert-match",
  "fixed-strings",
  "no-filename",
  "with-filename",
  "max-count",
  "max-depth",
  "context",
  "after-context",
  "before-context",
  "heading",
  "no-heading",
  "vimgrep",
  "json",
  "multiline",
  "pcre2",
  "sort",
  "stats",
  "quiet",
  "follow",
  "column",
  "no-messages",
  "regexp",
  "max-columns",
  "trim",
);

/**
 * Programs and what they reach by their words. It is a list of what is known to be harmless, not of what is dangerous: a
 * program or an option that is not here may do anything.
 */
const known: Readonly<Record<string, ShellProgram>> = {
  printf: { options: /^-$/, operands: "none", text: anyOption },
  // The index of a variable in brackets (`-v 'a[$(…)]'`) is evaluated.
  test: { options: /^-(?!v|R)/, operands: "none" },
  "[": { options: /^-(?!v|R)/, operands: "none" },
  jobs: { options: /^-[lnprs]$/, operands: "none" },
  wait: { options: /^-[nf]$/, operands: "none" },
  date: { options: shortLong("uIRd", "utc", "iso-8601", "rfc-3339", "date"), operands: "none" },
  uname: { options: shortLong("asnrvmpio", "all"), operands: "none" },
  hostname: { options: shortLong("fsIid"), operands: "none" },
  set: { options: /^-[euxo]+$/, operands: "none" },
  cd: { options: /^-[LP]$/, operands: "read" },
  cat: files(shortLong("AbeEnstTuv", "number", "show-all")),
  head: files(shortLong("nqcvz0-9", "lines", "bytes", "quiet")),
  tail: files(shortLong("nqcvzfFs0-9+", "lines", "bytes", "quiet", "follow", "retry")),
  wc: files(shortLong("clmLw", "lines", "words", "bytes", "chars")),
  sort: files(
    /^-(?:[bcCdfghiMnrRsuVz]*(?:[kt].*)?)$|^--(?:key|field-separator|numeric-sort|reverse|unique|version-sort|human-numeric-sort)(?:=.*)?$/,
  ),
  uniq: changes(shortLong("cdDfisuwz", "count", "repeated", "unique", "ignore-case")),
  cut: files(/^-(?:[bcdfnsz].*)?$|^--(?:delimiter|fields|bytes|characters|complement|output-delimiter|only-delimited)(?:=.*)?$/),
  nl: files(shortLong("bdfhilnpsvwa")),
  od: files(shortLong("abcdfijlosxAtNvwz")),
  hexdump: files(shortLong("bcCdoxvns")),
  xxd: changes(shortLong("abcEeglprsuibd")),
  md5sum: files(shortLong("bt")),
  sha1sum: files(shortLong("bt")),
  sha256sum: files(shortLong("bt")),
  sha512sum: files(shortLong("bt")),
  cksum: files(none),
  cmp: files(shortLong("bls")),
  comm: files(shortLong("123")),
  join: files(shortLong("aeijotv12")),
  paste: files(shortLong("dsz")),
  fold: files(shortLong("bsw")),
  column: files(shortLong("tscn")),
  rev: files(none),
  tac: files(shortLong("brs")),
  strings: files(shortLong("afnt")),
  file: files(shortLong("bikLhz", "brief", "mime", "mime-type")),
  stat: files(shortLong("cfLtn", "format", "printf", "dereference")),
  base64: files(shortLong("diw", "decode", "wrap")),
  realpath: files(shortLong("emsz", "relative-to", "relative-base")),
  readlink: files(shortLong("efmnz", "canonicalize")),
  jq: files(
    shortLong(
      "rcensMSCja",
      "raw-output",
      "compact-output",
      "exit-status",
      "null-input",
      "slurp",
      "arg",
      "argjson",
      "tab",
      "indent",
      "sort-keys",
    ),
    {
      refused: /import|include|modulemeta/,
    },
  ),
  ls: files(lsOptions, {
    recursive: /^-[a-zA-Z0-9]*R|^--recursive/,
    startsHere: true,
    showsHidden: /^-[a-zA-Z0-9]*[aAf]|^--(?:almost-)?all/,
  }),
  tree: files(shortLong("adfhiLpsCDFIPJ0-9", "dirsfirst", "noreport", "gitignore", "prune"), {
    recursive: true,
    startsHere: true,
    flags: /^-[adfhipsCDFJ]+$|^--/,
    showsHidden: /^-[a-zA-Z]*a/,
  }),
  du: files(shortLong("abcdhkmsx", "summarize", "human-readable", "max-depth", "exclude", "all", "total", "apparent-size"), {
    recursive: true,
    startsHere: true,
    flags: /^-[abchkmsx]+$|^-d\d+$|=|^--(?:summarize|human-readable|all|total|apparent-size)$/,
  }),
  find: files(
    /^-(?:-?|H|P|name|iname|path|ipath|wholename|regex|iregex|type|maxdepth|mindepth|mtime|mmin|atime|ctime|size|newer|not|o|or|a|and|print|print0|prune|empty|perm|user|group|readable|writable|executable|xdev|mount|depth|printf|quit|true|false)$/,
    { recursive: true, startsHere: true },
  ),
  fd: files(shortLong("aegHiIlptdEs0", "hidden", "no-ignore", "type", "extension", "max-depth", "glob", "exclude", "absolute-path"), {
    recursive: true,
    startsHere: true,
    flags: /^-[agHiIlps0]+$|=|^--(?:hidden|no-ignore|glob|absolute-path)$/,
    showsHidden: /^-[a-zA-Z]*H|^--hidden/,
    text: anyOption,
  }),
  grep,
  egrep: grep,
  fgrep: grep,
  rg: files(searchOptions, {
    recursive: true,
    followsLinks: /^-[a-zA-Z]*L|^--follow/,
    showsHidden: /^-[a-zA-Z]*[u.]|^--(?:hidden|no-ignore|glob|iglob)|^-[a-zA-Z]*g/,
    startsHere: true,
    flags:
      /^-[abcFHhilLnNopqsSvwxUzu.]*(?:[ABCm]\d+)?$|=|^--(?:hidden|no-ignore|no-ignore-vcs|line-number|no-line-number|ignore-case|smart-case|word-regexp|count|count-matches|files|files-with-matches|only-matching|invert-match|fixed-strings|no-filename|with-filename|heading|no-heading|vimgrep|json|multiline|pcre2|stats|quiet|follow|column|trim)$/,
    text: anyOption,
    textOption: /^-[a-zA-Z]*e$|^--(?:regexp|files)/,
  }),
  ag: files(shortLong("acfGhilLnoQsSvwABCu", "hidden", "ignore-case"), {
    recursive: true,
    followsLinks: true,
    startsHere: true,
    flags: none,
    text: anyOption,
  }),
  diff: files(
    shortLong("abBiNqrsuwyU0-9ExCw", "brief", "color", "unified", "side-by-side", "recursive", "ignore-all-space", "exclude", "stat"),
    {
      // Of two folders, also the files that are directly in them.
      recursive: true,
      followsLinks: true,
    },
  ),
  sed: changes(/^-(?:[nErsuz]+|i|-|e|-quiet|-regexp-extended|-expression|-in-place)?$/, {
    // Deleting, printing, quitting and substituting: no command that reads, writes or runs anything.
    text: /^(?:(?:\d+|\$|\/[^/\n;{}]*\/)?(?:,(?:\+?\d+|\$|\/[^/\n;{}]*\/))?!?[pdq=]|(?:(?:\d+|\$)(?:,(?:\d+|\$))?)?s([/|#,:@])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI\d]*)$/,
  }),
  awk: files(/^-(?:F.*|v)?$/, { refused: /getline|system|ARG|ENV|PROC|SYM|FUNC|@|\||>|include|load/ }),
  touch: changes(shortLong("acmhdt", "no-create")),
  mkdir: changes(shortLong("pvm", "parents", "mode")),
  rmdir: changes(shortLong("pv", "parents")),
  unlink: changes(none),
  truncate: changes(shortLong("sco", "size")),
  tee: changes(shortLong("ai", "append")),
  chmod: changes(shortLong("cfvRrwxX", "recursive"), { recursive: /^-[a-zA-Z]*R|^--recursive/ }),
  rm: changes(shortLong("fiIrRvd", "force", "recursive", "verbose"), { recursive: /^-[a-zA-Z]*[rR]|^--recursive/ }),
  cp: {
    options: shortLong("afinpruvRLPHdT", "recursive", "archive", "force", "verbose", "update", "no-clobber", "preserve"),
    operands: "copy",
    recursive: /^-[a-zA-Z]*[rRa]|^--(?:recursive|archive)/,
    renames: true,
    followsLinks: /^-[a-zA-Z]*L/,
  },
  mv: { options: shortLong("fiunvT", "force", "verbose", "no-clobber", "update"), operands: "copy", recursive: true, renames: true },
  tar: files(/^-(?:[ctzjJvf]+|-create|-list|-gzip|-verbose|-file(?:=.*)?|-exclude(?:=.*)?|-)?$/, {
    recursive: true,
    text: /^[ctzjJvf]+$/,
    textOption: /^-/,
    // `host:file` is a file of another machine.
    refused: /:/,
  }),
  zip: changes(shortLong("rq0-9", "quiet"), { recursive: true, followsLinks: true }),
  curl: {
    options:
      /^-(?:[sSfLikvgGO46#jIqo]+|[HXdAemwu]|-(?:silent|show-error|fail|head|include|request|header|output|data|data-raw|max-time|connect-timeout|retry|compressed|insecure|verbose|user-agent|url|get|location|remote-name|write-out|user)(?:=.*)?)$/,
    operands: "write",
    connects: true,
    refused: /(?:^|=|^-[a-zA-Z]+)@|^file:|<|^(?=[\s\S]*\/)[\s\S]*(?:[{}]|\[(?![\da-f:.]+\]))/i,
    elsewhere: /^-[a-zA-Z]*L|^--location|[{}]|\[(?![\da-f:.]+\])/i,
  },
  nc: { options: shortLong("zvwnu46l0-9"), operands: "none", connects: true },
  ping: { options: shortLong("cWwin46q0-9"), operands: "none", connects: true },
  dig: { options: shortLong("46x"), operands: "none", connects: true },
  host: { options: shortLong("tav46"), operands: "none", connects: true },
};

/** Undefined: nothing is known of a program of this name. */
export function findProgram(name: string): ShellProgram | undefined {
  const plain = /^\/(?:usr\/(?:local\/)?)?bin\/([^/]+)$/.exec(name)?.[1] ?? name;
  if (plainNames.split(" ").includes(plain)) return { options: anyOption, operands: "none" };
  return Object.hasOwn(known, plain) ? known[plain] : undefined;
}

/** Programs that only say which version they are, when that is all they are asked. */
export function saysItsVersion(words: readonly string[]): boolean {
  const [program = "", option = "", ...more] = words;
  if (more.length > 0 || !/^(?:--version|-v|-V|version|--help)$/.test(option)) return false;
  return /^(?:node|npm|npx|pnpm|yarn|bun|deno|python3?|pip3?|ruby|go|cargo|rustc|gcc|g\+\+|clang|make|cmake|java|javac|tsc|docker|kubectl|git|gh|uv)$/.test(
    program,
  );
}

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

// git takes any beginning of a long option for the option, so that only what is known can be told from what is not.
const longOptions =
  /^--(?:stat|shortstat|numstat|summary|name-only|name-status|cached|staged|oneline|graph|all|decorate|format|pretty|date|author|since|until|after|before|max-count|abbrev-commit|abbrev|no-color|color|patch|unified|word-diff|no-merges|merges|first-parent|follow|reverse|grep|short|branch|porcelain|ignored|untracked-files|show-toplevel|show-current|abbrev-ref|verify|symbolic-full-name|git-dir|is-inside-work-tree|amend|no-edit|no-verify|message|force|force-with-lease|set-upstream|tags|prune|quiet|verbose|hard|soft|mixed|keep|abort|continue|skip|ff-only|no-ff|squash|rebase|delete|list|contains|merged|no-merged|sort|count|exclude-standard|others|error-unmatch|find-renames|ignore-all-space|ignore-space-change|line-number|ignore-case|files-with-matches|get|get-all|get-regexp|local|allow-empty|signoff|source|worktree|theirs|ours|detach|orphan|track|update|dry-run|diff-filter|no-renames|remotes|heads|symref)(?:=.*)?$/s;

/** What git does with these words in a folder; a word is undefined when only running the line tells it. */
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

/** What is known of a program: which options it may have for that to hold, and what it does with its other words. */
export interface ShellProgram {
  /** Any other option makes it a program of which nothing is known. */
  readonly options: RegExp;
  /** `none`: its words are not files. `read`, `write`: they are files that it reads or changes. `copy`: the last one is changed, the others read. */
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
  /** Its first operand is not a file but a text, which must match this, as must each operand after an option. */
  readonly text?: RegExp;
  /** Options with which that text is not an operand. */
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

/** Programs whose words are not files, with any words. */
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

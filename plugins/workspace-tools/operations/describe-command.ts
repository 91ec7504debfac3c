import { parseCommandLine } from "skillhost";

/** What a command line would do, as far as its text shows: the fields of a permission request. */
export interface CommandFacts {
  readonly fullCommandText: string;
  readonly commands: readonly { readonly identifier: string; readonly readOnly: boolean }[];
  /** Each command of the line. */
  readonly commandSegments: readonly { readonly identifier: string; readonly fullCommandText: string }[];
  readonly possiblePaths: readonly string[];
  readonly possibleUrls: readonly { readonly url: string }[];
  readonly hasWriteFileRedirection: boolean;
  /** Whether the user can approve its commands for the whole session. */
  readonly canOfferSessionApproval: boolean;
}

export function describeCommand(text: string): CommandFacts {
  const { commands, isClear, isTooLong } = parseCommandLine(text);
  const facts = new Map<string, boolean>();
  // A name that occurs several times is read-only only if all its commands are.
  for (const words of commands) facts.set(identifierOf(words), isReadOnly(words) && facts.get(identifierOf(words)) !== false);
  return {
    fullCommandText: text,
    commands: Array.from(facts, ([identifier, readOnly]) => ({ identifier, readOnly })),
    commandSegments: commands.map((words) => ({ identifier: identifierOf(words), fullCommandText: words.join(" ") })),
    possiblePaths: [...new Set([...commands.flatMap(pathsIn), ...redirectionTargets(text)])],
    possibleUrls: [...new Set(commands.flat().flatMap(urlsIn))].map((url) => ({ url })),
    hasWriteFileRedirection: isTooLong || writesFile(text),
    canOfferSessionApproval: isClear && commands.length > 0 && commands.every(isSaidByItsName),
  };
}

type Words = readonly string[];

/** Commands that run other commands: approving them by name would approve everything. */
const carriers: ReadonlySet<string> = new Set(
  "sudo doas env command builtin exec eval source . nohup setsid stdbuf nice ionice time timeout xargs parallel watch busybox sh bash zsh dash ksh fish ssh find if then else elif while until do ! {".split(
    " ",
  ),
);

function isSaidByItsName([program = ""]: Words): boolean {
  // With a variable in front of it (PATH=…) a name may run a different command.
  return !carriers.has(program) && !/^[A-Za-z_]\w*\+?=/.test(program);
}

/** Programs with subcommands: the next word names what they do. */
const multiple: ReadonlySet<string> = new Set(
  "git gh npm npx pnpm yarn bun deno cargo go dotnet docker docker-compose kubectl helm terraform pip pip3 uv poetry gem bundle brew apt apt-get systemctl make just az aws gcloud".split(
    " ",
  ),
);

function identifierOf(words: Words): string {
  const [program = ""] = words;
  return hasPart(words) ? `${program} ${words[1]}` : program;
}

function hasPart([program = "", next = ""]: Words): boolean {
  return multiple.has(program) && /^[a-z][\w:-]*$/i.test(next);
}

const readers: ReadonlySet<string> = new Set(
  "basename cat cd cmp comm cut date df diff dirname du echo expr false file fold grep head hexdump hostname id jq less ls md5sum nl od printf ps pwd readlink realpath rg sha256sum sort stat strings tac tail test tr tree true type uname uniq wc which whoami".split(
    " ",
  ),
);
const readingParts: Readonly<Record<string, ReadonlySet<string>>> = {
  git: new Set("blame describe diff grep log ls-files ls-tree rev-parse shortlog show status".split(" ")),
  npm: new Set("ls list view outdated".split(" ")),
};

/** Whether a command only reads in common use. This informs users who decide, and must not be used for anything else. */
function isReadOnly(words: Words): boolean {
  const [program = "", next = ""] = words;
  // sort -o and git's --output write.
  if (words.some((word) => /^(-o|--output)/.test(word))) return false;
  return readers.has(program) || (Object.hasOwn(readingParts, program) && readingParts[program]!.has(next));
}

/** Words that may name files. Includes too many rather than too few, since rules that deny are checked against them. */
function pathsIn(words: Words): readonly string[] {
  const own = words.slice(hasPart(words) ? 2 : 1);
  return own.flatMap((word) => {
    if (word === "" || /^[a-z][a-z0-9+.-]*:\/\//i.test(word)) return [];
    if (word.startsWith("-")) return /^--?[\w-]+=(.+)$/.exec(word)?.[1] ?? [];
    return word;
  });
}

function urlsIn(word: string): readonly string[] {
  return (word.match(/https?:\/\/[^\s'"<>|;)]+/gi) ?? []).filter((url) => URL.canParse(url));
}

// Searched in the text, since the parsed words do not contain redirections. Quotes are ignored: at worst a ">" that is
// only text counts as a redirection.
const redirection = /(?<sign>[<>][>|&]?)\s*["']?(?<target>[^\s"'&|;<>()]+)/g;

function redirectionTargets(text: string): readonly string[] {
  return redirections(text).map(({ target }) => target);
}

function writesFile(text: string): boolean {
  return redirections(text).some(({ sign, target }) => sign.startsWith(">") && !/^\/dev\/(null|stdout|stderr)$/.test(target));
}

/** Without redirections to another stream, such as `2>&1`. */
function redirections(text: string): readonly { readonly sign: string; readonly target: string }[] {
  return Array.from(text.matchAll(redirection), ({ groups }) => ({ sign: groups!["sign"]!, target: groups!["target"]! })).filter(
    ({ sign, target }) => !(sign.endsWith("&") && /^(\d+-?|-)$/.test(target)),
  );
}

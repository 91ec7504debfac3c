import { HostError } from "../../base/errors.ts";

/** Skills in a Git repository. */
export interface GitSource {
  readonly url: string;
  /** A branch, a tag or a commit. Absent: the default branch. */
  readonly ref?: string | undefined;
  /** The folder of a skill, or one that contains skills; without slashes around it. Absent: the whole repository. */
  readonly path?: string | undefined;
}

/** The hosts whose repositories have short names. */
const hosts: Readonly<Record<string, string>> = { github: "github.com", gitlab: "gitlab.com", bitbucket: "bitbucket.org" };
const webHosts: readonly string[] = [...Object.values(hosts), "codeberg.org"];

/**
 * Reads the name of a Git repository: `owner/repo[/path][@ref]` (GitHub), an address that ends in `.git`, `git@host:path`, `ssh://…`, or
 * the address of a repository or folder on the website of a known host. Undefined: the text names something else.
 * @throws HostError `GIT_SOURCE` for a repository that must not be fetched in this way.
 */
export function parseGitSource(given: string): GitSource | undefined {
  if (/\.t(?:ar\.)?gz$/i.test(given)) return undefined;
  const text = given.replace(/^git\+(?=[a-z]+:\/\/)/, "");
  const found = parseScp(text) ?? parseUrl(text, text !== given) ?? parseShort(text);
  return found && checked(given, found);
}

/** `git@host:path.git`, as ssh writes it. npm writes `name@npm:other`, so the host must have a dot unless the user is `git`. */
function parseScp(text: string): GitSource | undefined {
  const match = /^((?:git@[\w.-]+|[\w.-]+@[\w-]+(?:\.[\w-]+)+):(?!\/\/))([^#]+)(?:#(.*))?$/.exec(text);
  return match === null ? undefined : afterAddress(match[1]!, match[2]!, match[3]);
}

function parseUrl(text: string, isExplicit: boolean): GitSource | undefined {
  const match = /^((https?|ssh|git|file):\/\/[^/#]*\/)([^#]*)(?:#(.*))?$/i.exec(text);
  if (match === null) return undefined;
  const [, base, scheme, address, ref] = match as unknown as [string, string, string, string, string | undefined];
  if (isExplicit || /^(?:ssh|git)$/i.test(scheme) || /\.git(?=[/@]|$)/.test(address)) return afterAddress(base, address, ref);
  return parseWebAddress(base, address, ref);
}

/** The path in the repository follows `.git/`, and the ref an `@` or `#`. */
function afterAddress(base: string, address: string, ref: string | undefined): GitSource {
  const match = /^(.*?\.git)(?:\/([^@]*))?(?:@(.+))?$/.exec(address) ?? /^([^@]*)()(?:@([^/]+))?$/.exec(address);
  if (match === null || ref !== undefined) {
    const [, repository, path] = /^(.*?\.git)\/(.*)$/.exec(address) ?? ["", address, undefined];
    return sourceOf(`${base}${repository}`, ref, path);
  }
  return sourceOf(`${base}${match[1]}`, match[3], match[2]);
}

/** `https://github.com/owner/repo`, and what its website shows below it: `/tree/<ref>/<folder>`. */
function parseWebAddress(base: string, address: string, ref: string | undefined): GitSource | undefined {
  const url = URL.canParse(base) ? new URL(base) : undefined;
  const parts = address
    .split(/[?]/)[0]!
    .split("/")
    .filter((part) => part !== "");
  if (url === undefined || !webHosts.includes(url.hostname.replace(/^www\./, "")) || parts.length < 2) return undefined;
  const [owner, name, ...rest] = parts;
  const repository = `https://${url.hostname.replace(/^www\./, "")}/${owner}/${name}.git`;
  if (rest.length === 0) return sourceOf(repository, ref, undefined);
  if (rest[0] === "-") rest.shift();
  const [kind, shownRef, ...path] = rest;
  if (!["tree", "blob", "src"].includes(kind!) || shownRef === undefined) return undefined;
  // Codeberg writes src/branch/<ref>.
  const named = kind === "src" && ["branch", "tag", "commit"].includes(shownRef) ? path.shift() : shownRef;
  return sourceOf(repository, ref ?? decoded(named), decoded(path.join("/")));
}

/** `owner/repo`, `owner/repo/path`, each with `@ref` or `#ref`. */
function parseShort(text: string): GitSource | undefined {
  const match =
    /^(?:(github|gitlab|bitbucket):)?([a-z0-9][\w.-]*)\/([\w.-]+?)(?:\.git)?(?:\/([^@#]*))?(?:@([^#]+))?$/i.exec(text) ??
    /^(?:(github|gitlab|bitbucket):)?([a-z0-9][\w.-]*)\/([\w.-]+?)(?:\.git)?(?:\/([^#]*))?(?:#(.*))?$/i.exec(text);
  if (match === null) return undefined;
  const [, host = "github", owner, name, path, ref] = match;
  return sourceOf(`https://${hosts[host.toLowerCase()]}/${owner}/${name}.git`, ref, path);
}

function sourceOf(url: string, ref: string | undefined, path: string | undefined): GitSource {
  // The address of a skill's document means the skill.
  const folder = path?.replace(/^\/+|\/+$/g, "").replace(/(?:^|\/)skill\.(?:md|json)$/i, "");
  return {
    url,
    ...(ref !== undefined && ref !== "" && { ref }),
    ...(folder !== undefined && folder !== "" && { path: folder }),
  };
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    // Not an encoded address, so it is taken as it was written.
    return text;
  }
}

/** @throws HostError `GIT_SOURCE` */
function checked(given: string, source: GitSource): GitSource {
  assertFetchable(source, given);
  return source;
}

/**
 * Refuses a source that must not be fetched. Those in a lock file come with the project.
 * @throws HostError `GIT_SOURCE`
 */
export function assertFetchable(source: GitSource, given: string = source.url): void {
  const fault = faultOf(source);
  if (fault === undefined) return;
  // The text is not repeated, because an address may contain a password.
  const shown = /:\/\/[^/]*@/.test(given) ? "This address" : JSON.stringify(given);
  throw new HostError("GIT_SOURCE", `${shown} cannot be fetched with git: ${fault}`);
}

function faultOf({ url, ref, path }: GitSource): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
  if (/^-|[\u0000-\u0020\u007f]/.test(url)) return "the address contains a space or an invisible character.";
  if (/^git:/i.test(url)) return "the git protocol is not encrypted. Use https or ssh.";
  if (/^[a-z]+:\/\//i.test(url)) {
    if (!URL.canParse(url)) return "the address is not a valid URL.";
    const parsed = new URL(url);
    if (!["https:", "http:", "ssh:", "file:"].includes(parsed.protocol)) return "only https, ssh and file addresses are supported.";
    if (parsed.protocol === "http:" && !/^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname))
      return "http is not encrypted. Use https or ssh.";
    if (parsed.password !== "" || (parsed.username !== "" && parsed.protocol !== "ssh:"))
      return "the address contains credentials, which would be stored in the lock file. Remove them: git asks its credential helper.";
    if (/^-/.test(parsed.hostname)) return "the name of the host begins with a hyphen.";
  } else if (!/^[\w.-]+@[a-z0-9][\w.-]*:/i.test(url)) return "the address is not a valid URL.";
  if (ref !== undefined && !isRef(ref)) return `${JSON.stringify(ref)} is not a valid branch, tag or commit.`;
  if (path?.split("/").some((part) => part === "" || part === "." || part === ".."))
    return `${JSON.stringify(path)} is not a path in a repository.`;
  return undefined;
}

/** The names that git allows for branches and tags, except for those that begin with a hyphen. */
function isRef(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
  const hasForbidden = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|\.lock(?:\/|$)/.test(text);
  return text.length <= 250 && !hasForbidden && !/^[-/.]|[/.]$/.test(text) && text !== "@";
}

export function isCommit(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

/** The short name of a repository, for people: `owner/repo`. */
export function repositoryLabel(url: string): string {
  const short = url.replace(/\.git$/, "");
  return /^https:\/\/github\.com\/([^/]+\/[^/]+)$/.exec(short)?.[1] ?? short.replace(/^https:\/\//, "");
}

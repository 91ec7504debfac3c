import { HostError } from "../../base/errors.ts";
import type { PermissionRequest, Tool } from "../../tools/tool.ts";
import { allowsArguments, forbidsArguments, readArgumentPatterns } from "./permission-arguments.ts";
import { type CommandPattern, forbidsCommands, type RequestedCommands, readCommands, wordsOf } from "./permission-commands.ts";
import { globFault, matchesWildcard } from "./permission-globs.ts";
import { type LineVerdict, reachesAddress, reachesPath } from "./permission-lines.ts";
import { allowsPath, forbiddenOnDisk, forbidsPath, readPath, toPathPattern } from "./permission-paths.ts";
import type { RuledReach } from "./permission-reach.ts";
import { allowsUrl, forbidsUrl, readUrl, readUrlPattern } from "./permission-urls.ts";
import { reachOf, type ShellReach } from "./shell-reach.ts";

/** A call as rules see it. */
export interface RuledCall {
  readonly tool: Tool;
  /** What the tool says that the call would do; undefined: it says nothing. */
  readonly request: PermissionRequest | undefined;
  /** As the handler gets them. */
  readonly args: unknown;
  /** `request` is what the host knows the call to reach, and not what the tool says. */
  readonly reach?: RuledReach;
}

/** One rule, read. `allows` is strict and `forbids` generous: where it is not sure, neither lets a call through. */
export interface PermissionRule {
  /** As it was written. */
  readonly text: string;
  /** What precedes the brackets, and what is between them, as the Copilot SDK tells of rules. */
  readonly kind: string;
  readonly argument: string | null;
  /** Whether it can be about calls of this tool at all. */
  concerns(tool: Tool): boolean;
  allows(call: RuledCall): boolean;
  forbids(call: RuledCall): boolean;
  /** For shell rules with a command: they allow a line of several commands only together. */
  readonly command?: CommandPattern;
  /** For rules about paths: whether one of them is what it is about. */
  readonly forbidsPath?: (path: string) => boolean;
  /** For rules about paths: those on the disk that it is about; undefined: more than can be looked through. */
  readonly pathsOnDisk?: () => readonly string[] | undefined;
  /** For rules about addresses: whether one of them is what it is about. */
  readonly forbidsAddress?: (url: string) => boolean;
  readonly allowsAddress?: (url: string) => boolean;
  /** What a command line means for a rule about paths or addresses. */
  readonly judgesLine?: (reach: ShellReach) => LineVerdict;
}

const forms =
  "The forms are: a tool's name; tool(<name>); <tool name>(<pattern>) or <tool name>(<argument>=<pattern>); shell(<command>), shell(<command>:*); " +
  "read(<path>), write(<path>); url(<host>), url(<address>); mcp(<server>), mcp(<server>:*), mcp(<server>/<tool>); " +
  "shell, read, write, url, memory, mcp alone for all of their kind.";

/**
 * Reads a rule. Paths in it are relative to the working directory.
 * @throws HostError `PERMISSION_RULE` naming the rule and the forms that there are.
 */
export function parsePermissionRule(text: string, workingDirectory: string): PermissionRule {
  if (text.length > 1000) throw fault(`${text.slice(0, 50)}…`, "it is longer than 1,000 characters");
  const { name, argument } = split(text);
  const parts = { text, kind: name, argument };
  if (!Object.hasOwn(kinds, name)) return { ...parts, ...toolRule(name, argument, text, workingDirectory) };
  const judgement = kinds[name as keyof typeof kinds](argument, text, workingDirectory);
  return { ...parts, ...(argument === null ? alsoNamed(name, judgement) : judgement) };
}

/** A word that is a kind may be a tool's name as well: forbidding, it means both; allowing, only the kind. */
function alsoNamed(name: string, { concerns, allows, forbids }: Judgement): Judgement {
  const isNamed = ({ definition }: Tool): boolean => definition.name === name;
  return {
    concerns: (tool) => concerns(tool) || isNamed(tool),
    allows: (call) => concerns(call.tool) && allows(call),
    forbids: (call) => isNamed(call.tool) || (concerns(call.tool) && forbids(call)),
  };
}

function split(text: string): { name: string; argument: string | null } {
  const trimmed = text.trim();
  const open = trimmed.indexOf("(");
  const name = (open === -1 ? trimmed : trimmed.slice(0, open)).trim();
  if (open !== -1 && !trimmed.endsWith(")")) throw fault(text, "its bracket is not closed at the end");
  if (!/^[\w*?-]+$/.test(name)) throw fault(text, name === "" ? "it names nothing" : `${JSON.stringify(name)} is not a valid tool name`);
  const argument = open === -1 ? null : trimmed.slice(open + 1, -1).trim();
  if (argument === "") throw fault(text, "there is nothing between its brackets");
  return { name, argument };
}

type Judgement = Omit<PermissionRule, "text" | "kind" | "argument">;
type KindReader = (argument: string | null, text: string, workingDirectory: string) => Judgement;

const kinds = {
  shell: shellRule,
  read: pathRule("read", ["path", "fileName"], ["possiblePaths"]),
  write: pathRule("write", ["fileName", "path"], ["possiblePaths"]),
  url: urlRule,
  memory: (argument, text) => {
    if (argument !== null) throw fault(text, "memory takes nothing in brackets");
    return wholeKind("memory");
  },
  mcp: (argument, text) => mcpRule(argument, text),
  tool: (argument, text, workingDirectory) => {
    if (argument === null) return toolRule("tool", null, text, workingDirectory);
    // For tools whose names are those of kinds.
    if (!/^[\w*?-]+$/.test(argument)) throw fault(text, `${JSON.stringify(argument)} is not a valid tool name`);
    return toolRule(argument, null, text, workingDirectory);
  },
} satisfies Readonly<Record<string, KindReader>>;

function toolRule(name: string, argument: string | null, text: string, workingDirectory: string): Judgement {
  const concerns = ({ definition }: Tool): boolean => matchesWildcard(name, definition.name);
  if (argument === null || argument === "*" || argument === "**") return always(concerns);
  const patterns = readArgumentPatterns(argument);
  for (const { glob } of patterns) assertGlob(glob, text);
  return {
    concerns,
    allows: ({ args }) => allowsArguments(patterns, args),
    forbids: ({ args }) => forbidsArguments(patterns, args, workingDirectory),
  };
}

/** A server's name is never a pattern: a server may be called whatever its author likes. */
function mcpRule(argument: string | null, text: string): Judgement {
  if (argument === null || argument === "*") return always(({ origin }) => origin.kind === "mcp");
  assertGlob(argument, text);
  return always(({ origin: { kind, source, nativeName } }) => {
    if (kind !== "mcp" || !argument.startsWith(source)) return false;
    const rest = argument.slice(source.length);
    return rest === "" || rest === ":*" || (rest.startsWith("/") && matchesWildcard(rest.slice(1), nativeName));
  });
}

function shellRule(argument: string | null, text: string): Judgement {
  if (argument === null || argument === "*" || argument === ":*") return wholeKind("shell");
  const [, stem = argument, isPrefix] = /^(.*?)(:\*|\s+\*)$/.exec(argument) ?? [];
  const command: CommandPattern = { words: wordsOf(stem), isPrefix: isPrefix !== undefined };
  if (stem.includes("*")) throw fault(text, "a * stands only at the end of a command, for all that may follow");
  if (/[;&|<>$`()'"\\]/.test(stem)) throw fault(text, "a command is plain words, without quotes and operators");
  if (command.words.length === 0) throw fault(text, "it names no command");
  return {
    command,
    concerns: describesItself,
    // Together with the other rules: see `allowsCommands`.
    allows: () => false,
    forbids: ({ request }) => request?.kind === "shell" && forbidsCommands(command, commandsOf(request)),
  };
}

function pathRule(kind: string, fields: readonly string[], lists: readonly string[]): KindReader {
  return (argument, text, workingDirectory) => {
    if (argument === null) return wholeKind(kind);
    assertGlob(argument, text);
    const pattern = toPathPattern(argument, workingDirectory);
    const pathOf = (request: PermissionRequest): unknown => fields.map((field) => request[field]).find((value) => value !== undefined);
    const listed = (request: PermissionRequest): readonly unknown[] => lists.flatMap((field) => textsOf(request[field]));
    const judgesLine = (reach: ShellReach): LineVerdict => reachesPath(reach, pattern, kind);
    return {
      concerns: describesItself,
      allows({ request }) {
        if (request?.kind !== kind) return false;
        // Of a request about several paths the one is only what they have in common.
        const several = listed(request);
        return (several.length > 0 ? several : [pathOf(request)]).every((value) => {
          const path = readPath(value, workingDirectory);
          return path !== undefined && allowsPath(pattern, path);
        });
      },
      forbids(call) {
        const { request } = call;
        if (request?.kind === "shell") return listed(request).some(isForbidden) || forbidsLine(call, workingDirectory, judgesLine);
        return request?.kind === kind && [pathOf(request), ...listed(request)].some(isForbidden);
      },
      forbidsPath: isForbidden,
      pathsOnDisk: () => forbiddenOnDisk(pattern, kind === "write"),
      judgesLine,
    };
    function isForbidden(value: unknown): boolean {
      const path = readPath(value, workingDirectory);
      // What cannot be read as a path may be any.
      return path === undefined || forbidsPath(pattern, path);
    }
  };
}

function urlRule(argument: string | null, text: string, workingDirectory: string): Judgement {
  if (argument === null || argument === "*") return wholeKind("url");
  const pattern = readUrlPattern(argument);
  if (pattern === undefined) throw fault(text, `${JSON.stringify(argument)} is neither a host nor an address`);
  const isForbidden = (value: unknown): boolean => {
    const url = readUrl(value);
    return url === undefined || forbidsUrl(pattern, url);
  };
  const judgesLine = (reach: ShellReach): LineVerdict => reachesAddress(reach, pattern);
  return {
    concerns: describesItself,
    forbidsAddress: isForbidden,
    allowsAddress(value) {
      const url = readUrl(value);
      return url !== undefined && allowsUrl(pattern, url);
    },
    judgesLine,
    allows({ request }) {
      return request?.kind === "url" && urlsOf(request).every((url) => url !== undefined && allowsUrl(pattern, url));
    },
    forbids(call) {
      const { request } = call;
      if (request?.kind === "shell")
        return textsOf(request["possibleUrls"]).some(isForbidden) || forbidsLine(call, workingDirectory, judgesLine);
      return request?.kind === "url" && [request["url"], ...textsOf(request["possibleUrls"])].some(isForbidden);
    },
  };
}

/** All addresses that a request to fetch is about; undefined for what is none. */
export function urlsOf(request: PermissionRequest): readonly (URL | undefined)[] {
  return [request["url"], ...textsOf(request["possibleUrls"])].map(readUrl);
}

/** A line that surely reaches what is forbidden is; one that may reach it as well, unless the machine keeps it from that. */
function forbidsLine(call: RuledCall, workingDirectory: string, judgesLine: (reach: ShellReach) => LineVerdict): boolean {
  const reach = reachOfRequest(call.request!, call.reach?.workingDirectory ?? workingDirectory);
  const verdict = reach === undefined ? "unsure" : judgesLine(reach);
  return verdict === "reaches" || (verdict === "unsure" && !isConfined(call));
}

/** Only plugins start programs by themselves and can say so; what the tools of skills say of it means nothing. */
function isConfined({ tool: { origin }, request, reach }: RuledCall): boolean {
  if (reach !== undefined) return reach.isConfined;
  return request?.["isConfined"] === true && (origin.kind === "plugin" || origin.kind === "builtin");
}

// One call meets all rules: its line is taken apart once.
const reachedBefore = new WeakMap<PermissionRequest, ShellReach>();

/** Undefined: the request does not say which line it would run. */
function reachOfRequest(request: PermissionRequest, workingDirectory: string): ShellReach | undefined {
  const { fullCommandText } = request;
  if (typeof fullCommandText !== "string") return undefined;
  let reach = reachedBefore.get(request);
  if (reach === undefined) {
    reach = reachOf(fullCommandText, workingDirectory);
    reachedBefore.set(request, reach);
  }
  return reach;
}

function always(concerns: (tool: Tool) => boolean): Judgement {
  return { concerns, allows: () => true, forbids: () => true };
}

function wholeKind(kind: string): Judgement {
  const isOfKind = ({ request }: RuledCall): boolean => request?.kind === kind;
  return { concerns: describesItself, allows: isOfKind, forbids: isOfKind };
}

/** Only what a tool says of its calls itself has a kind that rules are about. */
function describesItself({ permission }: Tool): boolean {
  return permission !== undefined;
}

// One call meets all shell rules: its line is taken apart once.
const readBefore = new WeakMap<PermissionRequest, RequestedCommands>();

export function commandsOf(request: PermissionRequest): RequestedCommands {
  let commands = readBefore.get(request);
  if (commands === undefined) {
    commands = readCommands(request);
    readBefore.set(request, commands);
  }
  return commands;
}

function textsOf(value: unknown): readonly unknown[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [];
  return values.map((item) => (typeof item === "object" && item !== null && "url" in item ? item.url : item));
}

function assertGlob(glob: string, text: string): void {
  const problem = globFault(glob);
  if (problem !== undefined) throw fault(text, problem);
}

function fault(text: string, problem: string): HostError {
  return new HostError("PERMISSION_RULE", `The permission rule ${JSON.stringify(text)} cannot be read: ${problem}. ${forms}`);
}

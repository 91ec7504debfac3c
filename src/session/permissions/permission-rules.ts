import { HostError } from "../../base/errors.ts";
import { matchesWildcard } from "../../base/text.ts";
import { isPrivateHost } from "../../io/net/host-address.ts";
import { maxLimitedPaths, type ProcessLimits } from "../../io/process/confine-process.ts";
import type { AddressRules, PermissionRequest, Tool } from "../../tools/tool.ts";
import {
  allowsCommands,
  type CommandPattern,
  forbidsCommands,
  type LineVerdict,
  type RequestedCommands,
  reachesAddress,
  reachesPath,
  readCommands,
  wordsOf,
} from "./command-line-rules.ts";
import { allowsPath, forbiddenOnDisk, forbidsPath, readPath, toPathPattern } from "./permission-paths.ts";
import { allowsUrl, forbidsUrl, globFault, readUrl, readUrlPattern } from "./permission-patterns.ts";
import { allowsArguments, forbidsArguments, type RuledReach, readArgumentPatterns } from "./permission-reach.ts";
import { reachOf, type ShellReach } from "./shell-reach.ts";

/**
 * What is decided beforehand about calls. A rule of `deny` beats one of `ask`, and that one of `allow`.
 *
 * @example
 * ```ts
 * const rules: PermissionRuleOptions = { allow: ["get_weather", "shell(git status)"], deny: ["shell(rm *)"] };
 * ```
 */
export interface PermissionRuleOptions {
  /** Calls that run without anybody being asked. */
  readonly allow?: readonly string[] | undefined;
  /** Calls that never run. */
  readonly deny?: readonly string[] | undefined;
  /** Calls that must be approved each time, also when the tool skips the question. */
  readonly ask?: readonly string[] | undefined;
}

export type RuleVerdict =
  | { readonly kind: "deny"; readonly rule: PermissionRule }
  | { readonly kind: "ask"; readonly rule: PermissionRule }
  | { readonly kind: "allow" };

/** The rules of a session, read once. Rules that cannot be about a tool cost its calls nothing. */
export interface PermissionRules {
  /** Whether a call of this tool may be denied or asked for though its tool needs no permission. */
  mayStop(tool: Tool): boolean;
  /**
   * Undefined: no rule says anything. `reached` is the same call as what the host knows it to reach: it may forbid the call, or want
   * a question, and allows nothing. Never throws.
   */
  judge(call: RuledCall, reached?: RuledCall): RuleVerdict | undefined;
  /** Whether rules may say something about what calls of this tool reach. */
  judgesReach(tool: Tool): boolean;
  /**
   * Whether a rule forbids reading what is at an absolute path, or requires a question: for searches, whose calls are
   * about a folder that it lies in. Undefined: no rule is about paths that are read. Never throws.
   */
  readonly isKeptBack: ((path: string) => boolean) | undefined;
  /** The same for addresses. */
  readonly isAddressKeptBack: ((url: string) => boolean) | undefined;
  /**
   * What a line must be kept from where rules cannot decide by reading it whether it reaches what they forbid, or require a question
   * about. "unenforceable": they are about more, or other, than limits can express. Undefined: there are no such rules.
   */
  readonly limitsOf: ((line: string, workingDirectory?: string) => ProcessLimits | "unenforceable") | undefined;
  /** What rules say of the addresses that an allowed call meets. Undefined: no rule is about addresses. */
  readonly addresses: AddressRules | undefined;
}

/** @throws HostError `PERMISSION_RULE` naming the rule that cannot be read. */
export function compilePermissionRules(options: PermissionRuleOptions, workingDirectory: string): PermissionRules {
  const read = (texts: readonly string[] = []): readonly PermissionRule[] =>
    texts.map((text) => parsePermissionRule(text, workingDirectory));
  const all: RuleLists = { deny: read(options.deny), ask: read(options.ask), allow: read(options.allow) };
  return isEmpty(all) ? noRules : new CompiledRules(all, workingDirectory);
}

interface RuleLists {
  readonly deny: readonly PermissionRule[];
  readonly ask: readonly PermissionRule[];
  readonly allow: readonly PermissionRule[];
}

const noRules: PermissionRules = Object.freeze({
  mayStop: () => false,
  judgesReach: () => false,
  judge: () => undefined,
  isKeptBack: undefined,
  isAddressKeptBack: undefined,
  limitsOf: undefined,
  addresses: undefined,
});
const noLists: RuleLists = Object.freeze({ deny: [], ask: [], allow: [] });
const allowed: RuleVerdict = Object.freeze({ kind: "allow" });

class CompiledRules implements PermissionRules {
  readonly isKeptBack: ((path: string) => boolean) | undefined;
  readonly isAddressKeptBack: ((url: string) => boolean) | undefined;
  readonly limitsOf: PermissionRules["limitsOf"];
  readonly addresses: AddressRules | undefined;
  readonly #all: RuleLists;
  readonly #byTool = new WeakMap<Tool, RuleLists>();

  constructor(all: RuleLists, workingDirectory: string) {
    this.#all = all;
    const forbidding = [...all.deny, ...all.ask];
    const ofAddresses = forbidding.filter(({ forbidsAddress }) => forbidsAddress !== undefined);
    this.isAddressKeptBack =
      ofAddresses.length === 0 ? undefined : (url) => ofAddresses.some(({ forbidsAddress }) => forbidsAddress?.(url));
    const isAboutLines = forbidding.some(({ judgesLine }) => judgesLine !== undefined);
    this.limitsOf = isAboutLines ? (line, folder = workingDirectory) => limitsOf(all, reachOf(line, folder)) : undefined;
    this.addresses = addressRules(all);
    const rules = [...all.deny, ...all.ask].filter(({ kind, forbidsPath }) => kind === "read" && forbidsPath !== undefined);
    this.isKeptBack = rules.length === 0 ? undefined : (path) => rules.some(({ forbidsPath }) => forbidsPath?.(path));
  }

  mayStop(tool: Tool): boolean {
    const { deny, ask } = this.#about(tool);
    return deny.length > 0 || ask.length > 0;
  }

  judgesReach(tool: Tool): boolean {
    return tool.reach !== undefined && this.#about(tool) !== noLists;
  }

  judge(call: RuledCall, reached?: RuledCall): RuleVerdict | undefined {
    const { deny, ask, allow } = this.#about(call.tool);
    const isHeld = (rule: PermissionRule): boolean => isForbidden(rule, call) || (reached !== undefined && isForbidden(rule, reached));
    for (const rule of deny) if (isHeld(rule)) return { kind: "deny", rule };
    for (const rule of ask) if (isHeld(rule)) return { kind: "ask", rule };
    if (allow.length === 0 || (reached !== undefined && isPrivate(reached) && !isNamed(allow, reached))) return undefined;
    return isAllowed(allow, call) ? allowed : undefined;
  }

  #about(tool: Tool): RuleLists {
    let lists = this.#byTool.get(tool);
    if (lists === undefined) {
      const about = (rules: readonly PermissionRule[]): readonly PermissionRule[] => rules.filter((rule) => rule.concerns(tool));
      const { deny, ask, allow } = this.#all;
      const own = { deny: about(deny), ask: about(ask), allow: about(allow) };
      lists = isEmpty(own) ? noLists : own;
      this.#byTool.set(tool, lists);
    }
    return lists;
  }
}

/** A line that certainly reaches what a rule of `ask` is about runs without limits by that rule, once it was approved. */
function limitsOf({ deny, ask }: RuleLists, reach: ShellReach): ProcessLimits | "unenforceable" {
  const rules = [...deny, ...ask.filter(({ judgesLine }) => judgesLine?.(reach) !== "reaches")];
  const pathsOf = (kind: string): readonly string[] | undefined => {
    const found = new Set<string>();
    for (const { pathsOnDisk } of rules.filter((rule) => rule.kind === kind)) {
      const paths = pathsOnDisk === undefined ? [] : pathsOnDisk();
      if (paths === undefined) return undefined;
      for (const path of paths) found.add(path);
    }
    return [...found];
  };
  const [unreadable, unwritable] = [pathsOf("read"), pathsOf("write")];
  if (unreadable === undefined || unwritable === undefined || unreadable.length + unwritable.length > maxLimitedPaths)
    return "unenforceable";
  const isOffline = rules.some(({ kind, judgesLine }) => kind === "url" && judgesLine?.(reach) === "unsure");
  return { unreadable, unwritable, isOffline };
}

function isEmpty({ deny, ask, allow }: RuleLists): boolean {
  return deny.length + ask.length + allow.length === 0;
}

function isForbidden(rule: PermissionRule, call: RuledCall): boolean {
  try {
    return rule.forbids(call);
  } catch {
    // Arguments or a request that cannot be looked at, such as a getter that throws, may hold whatever is forbidden.
    return true;
  }
}

function isAllowed(rules: readonly PermissionRule[], call: RuledCall): boolean {
  try {
    const fitting = isPrivate(call) ? rules.filter(({ forbidsAddress }) => forbidsAddress !== undefined) : rules;
    return fitting.some((rule) => rule.allows(call)) || areCommandsAllowed(fitting, call);
  } catch {
    // The other way round: what cannot be looked at is allowed by nothing.
    return false;
  }
}

/** An address that a tool reaches is named by a rule about addresses. Whether the tool may be called is for other rules. */
function isNamed(rules: readonly PermissionRule[], call: RuledCall): boolean {
  return rules.some(({ forbidsAddress, allows }) => forbidsAddress !== undefined && allows(call));
}

function addressRules({ deny, ask, allow }: RuleLists): AddressRules | undefined {
  const about = ({ forbidsAddress }: PermissionRule): boolean => forbidsAddress !== undefined;
  const [denied, asked, named] = [deny.filter(about), ask.filter(about), allow.filter(about)];
  if (denied.length + asked.length + named.length === 0) return undefined;
  const holds = (rule: PermissionRule, url: string): boolean => rule.forbidsAddress?.(url) === true;
  return {
    // Who was asked because of a rule about the first address has answered for the others that it is about.
    mayFollow: (from, to) => !denied.some((rule) => holds(rule, to)) && !asked.some((rule) => holds(rule, to) && !holds(rule, from)),
    names: (url) => named.some(({ allowsAddress }) => allowsAddress?.(url) === true),
  };
}

/** What belongs to a private network is allowed only by rules that name it, not by those that say "all": it trusts everything inside. */
function isPrivate({ request }: RuledCall): boolean {
  return request?.kind === "url" && urlsOf(request).some((url) => url !== undefined && isPrivateHost(url.hostname));
}

function areCommandsAllowed(rules: readonly PermissionRule[], { request }: RuledCall): boolean {
  if (request?.kind !== "shell") return false;
  const patterns = rules.map(({ command }) => command).filter((command): command is CommandPattern => command !== undefined);
  return patterns.length > 0 && allowsCommands(patterns, commandsOf(request));
}

/** A call as rules see it. */
interface RuledCall {
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
  /** What precedes the brackets, and what is between them, as the Copilot SDK describes rules. */
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
  "Valid forms: <tool name>; tool(<name>); <tool name>(<pattern>) or <tool name>(<argument>=<pattern>); shell(<command>), shell(<command>:*); " +
  "read(<path>), write(<path>); url(<host>), url(<address>); mcp(<server>), mcp(<server>:*), mcp(<server>/<tool>); " +
  "shell, read, write, url, memory or mcp alone for everything of that kind.";

/**
 * Reads a rule. Paths in it are relative to the working directory.
 * @throws HostError `PERMISSION_RULE` naming the rule and the forms that there are.
 */
function parsePermissionRule(text: string, workingDirectory: string): PermissionRule {
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
  if (open !== -1 && !trimmed.endsWith(")")) throw fault(text, "it has an opening parenthesis but does not end with a closing one");
  if (!/^[\w*?-]+$/.test(name)) throw fault(text, name === "" ? "it has no name" : `${JSON.stringify(name)} is not a valid tool name`);
  const argument = open === -1 ? null : trimmed.slice(open + 1, -1).trim();
  if (argument === "") throw fault(text, "its parentheses are empty");
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
    if (argument !== null) throw fault(text, "memory does not take a pattern in parentheses");
    return wholeKind("memory");
  },
  mcp: (argument, text) => {
    // A server's name is never a pattern: a server may be called whatever its author likes.
    if (argument === null || argument === "*") return always(({ origin }) => origin.kind === "mcp");
    assertGlob(argument, text);
    return always(({ origin: { kind, source, nativeName } }) => {
      if (kind !== "mcp" || !argument.startsWith(source)) return false;
      const rest = argument.slice(source.length);
      return rest === "" || rest === ":*" || (rest.startsWith("/") && matchesWildcard(rest.slice(1), nativeName));
    });
  },
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

function shellRule(argument: string | null, text: string): Judgement {
  if (argument === null || argument === "*" || argument === ":*") return wholeKind("shell");
  const [, stem = argument, isPrefix] = /^(.*?)(:\*|\s+\*)$/.exec(argument) ?? [];
  const command: CommandPattern = { words: wordsOf(stem), isPrefix: isPrefix !== undefined };
  if (stem.includes("*")) throw fault(text, "a * is allowed only at the end of a command, where it matches everything that follows");
  if (/[;&|<>$`()'"\\]/.test(stem)) throw fault(text, "a command must consist of plain words, without quotes and operators");
  if (command.words.length === 0) throw fault(text, "it does not name a command");
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

/** All addresses of a fetch request; undefined for one that cannot be read. */
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

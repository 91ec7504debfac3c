import { isPrivateHost } from "../../io/net/pinned-fetch.ts";
import { maxLimitedPaths, type ProcessLimits } from "../../io/process/confine-process.ts";
import type { AddressRules, Tool } from "../../tools/tool.ts";
import { allowsCommands, type CommandPattern } from "./permission-commands.ts";
import { commandsOf, type PermissionRule, parsePermissionRule, type RuledCall, urlsOf } from "./permission-rule.ts";
import { reachOf, type ShellReach } from "./shell-reach.ts";

/** What is decided beforehand about calls. A rule of `deny` beats one of `ask`, and that one of `allow`. */
export interface PermissionRuleOptions {
  /** Calls that run without anybody being asked. */
  readonly allow?: readonly string[] | undefined;
  /** Calls that never run. */
  readonly deny?: readonly string[] | undefined;
  /** Calls that somebody must allow each time, also when the tool skips the question. */
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
   * somebody asked, and allows nothing. Never throws.
   */
  judge(call: RuledCall, reached?: RuledCall): RuleVerdict | undefined;
  /** Whether rules may say something about what calls of this tool reach. */
  judgesReach(tool: Tool): boolean;
  /**
   * Whether a rule forbids reading what is at an absolute path, or wants somebody asked: for searches, whose calls are
   * about a folder that it lies in. Undefined: no rule is about paths that are read. Never throws.
   */
  readonly isKeptBack: ((path: string) => boolean) | undefined;
  /** The same for addresses. */
  readonly isAddressKeptBack: ((url: string) => boolean) | undefined;
  /**
   * What a line must be kept from where rules cannot tell by reading it whether it reaches what they forbid, or want somebody
   * asked about. "unenforceable": they are about more, or other, than limits can express. Undefined: there are no such rules.
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

/** A line that surely reaches what a rule of `ask` is about runs without limits by that rule, once somebody has allowed it. */
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

/** What belongs to a private network is allowed by rules that name it, and by none that only say "all": it trusts whoever is inside. */
function isPrivate({ request }: RuledCall): boolean {
  return request?.kind === "url" && urlsOf(request).some((url) => url !== undefined && isPrivateHost(url.hostname));
}

function areCommandsAllowed(rules: readonly PermissionRule[], { request }: RuledCall): boolean {
  if (request?.kind !== "shell") return false;
  const patterns = rules.map(({ command }) => command).filter((command): command is CommandPattern => command !== undefined);
  return patterns.length > 0 && allowsCommands(patterns, commandsOf(request));
}

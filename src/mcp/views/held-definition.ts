import type { Diagnostic } from "../../base/diagnostic.ts";
import { isSecretName } from "../../base/logger.ts";
import { exactJson } from "../../base/untrusted-text.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import { briefDiff, diffToApprove, isSameJson } from "../../trust/pins/definition-diff.ts";
import type { PinVerdict } from "../../trust/pins/pins.ts";
import { ownerId, type PinSubject } from "../../trust/pins/seen-pins.ts";
import type { SupervisedServer } from "../supervisor/server-lease.ts";

/** A tool, skill or text of a server that is not offered until it has been approved. */
export interface HeldDefinition {
  readonly kind: "tool" | "instructions" | "skill";
  /** The server's name in the configuration. */
  readonly server: string;
  /** The server's own name for the tool, or the address of the skill; empty for instructions. */
  readonly name: string;
  /** `changed`: it differs from what was seen or approved before. `new`: no version has been approved, and one must be. */
  readonly reason: "changed" | "new";
  /** Digest of the definition. An approval is for exactly this. */
  readonly digest: string;
  /** What changed, one line each; the whole definition where there is none to compare with. */
  readonly diff: readonly string[];
  readonly before?: unknown;
  readonly after: unknown;
}

export function heldDefinition(subject: PinSubject, verdict: Exclude<PinVerdict, { kind: "accepted" }>, server: string): HeldDefinition {
  const before = verdict.kind === "changed" ? verdict.before : undefined;
  return Object.freeze({
    kind: subject.kind.slice("mcp-".length) as HeldDefinition["kind"],
    server,
    name: subject.name,
    reason: verdict.kind,
    digest: subject.digest,
    diff: Object.freeze(diffToApprove(before, subject.content)),
    ...(before !== undefined && { before }),
    after: subject.content,
  });
}

// Each of these is shown with its diff; of more, only the names.
const maxDiffs = 20;
const maxNames = 20;

/** Reports what is held back, why, and what to do about it. `howToApprove` ends each message. */
export function diagnoseHeld(held: readonly HeldDefinition[], howToApprove: (held: HeldDefinition) => string): readonly Diagnostic[] {
  const changed = held.filter(({ reason }) => reason === "changed");
  const shown = changed.slice(0, maxDiffs).map((definition) => changedDiagnostic(definition, howToApprove));
  const rest = [...changed.slice(maxDiffs), ...held.filter(({ reason }) => reason === "new")];
  const kinds = new Set(rest.map(({ kind, reason }) => `${kind} ${reason}`));
  const grouped = [...kinds].map((kind) =>
    groupDiagnostic(
      rest.filter((definition) => `${definition.kind} ${definition.reason}` === kind),
      howToApprove,
    ),
  );
  return [...shown, ...grouped];
}

function changedDiagnostic(held: HeldDefinition, howToApprove: (held: HeldDefinition) => string): Diagnostic {
  const changes = held.before === undefined ? ["(the previous definition is not known)"] : briefDiff(held.diff);
  const what = `${subjectOf(held)} differs from what was first seen or approved, so it is not available. What changed:`;
  const message = `${what}\n${changes.map((line) => `  ${line}`).join("\n")}\n${howToApprove(held)}`;
  return { severity: "error", code: codeOf(held), source: held.server, message };
}

function groupDiagnostic(group: readonly HeldDefinition[], howToApprove: (held: HeldDefinition) => string): Diagnostic {
  const [first] = group as readonly [HeldDefinition, ...HeldDefinition[]];
  const names = group.slice(0, maxNames).map(({ name }) => exactJson(name.slice(0, 80)));
  const more = group.length > maxNames ? ` and ${group.length - maxNames} more` : "";
  const isOne = group.length === 1;
  const subject = isOne ? subjectOf(first) : `MCP server "${first.server}", ${group.length} ${first.kind}s (${names.join(", ")}${more})`;
  const verb = isOne ? "it is" : "they are";
  const why = first.reason === "new" ? `${verb} not approved yet` : `${isOne ? "it has" : "they have"} changed since the approval`;
  const message = `${subject}: ${verb} not available, because ${why}. ${howToApprove(first)}`;
  return { severity: first.reason === "new" ? "warning" : "error", code: codeOf(first), source: first.server, message };
}

function subjectOf({ kind, server, name }: HeldDefinition): string {
  return `MCP server "${server}", ${kind === "instructions" ? "its instructions" : `${kind} ${exactJson(name.slice(0, 200))}`}`;
}

function codeOf({ kind, reason }: HeldDefinition): string {
  return `MCP_${kind.toUpperCase()}_${reason === "changed" ? "CHANGED" : "UNAPPROVED"}`;
}

/**
 * The owner of a server's definitions: its name, and the code or address behind it. For a local server that is the
 * command, its arguments, the real folder that it runs in, and the variables that make it load other code. Other values of
 * the environment and headers are left out: they hold secrets and are renewed, so they must neither be stored nor turn the
 * same server into another.
 */
export function pinOwner(server: Pick<SupervisedServer, "spec" | "resolvedSpec">): string {
  const { spec } = server;
  const resolvedSpec = server.resolvedSpec ?? spec;
  if ("reason" in resolvedSpec) return ownerId(spec.name, []);
  if (resolvedSpec.type !== "stdio") return ownerId(spec.name, [resolvedSpec.url]);
  const { command, args, cwd, env } = resolvedSpec;
  return ownerId(spec.name, [command, args, cwd ?? "", codeVariables(env)]);
}

/** The owner of a local server's pins in earlier versions: its command, and the folder as it was written. Undefined: no other owner. */
export function formerPinOwner({ spec }: Pick<SupervisedServer, "spec">): string | undefined {
  if ("reason" in spec || spec.type !== "stdio") return undefined;
  return ownerId(spec.name, [spec.command, spec.args, spec.cwd ?? ""]);
}

// Variables that determine what loaders, interpreters and package managers load, and from where.
const codeVariable = new RegExp(
  `^(?:${[
    "PATH|PATHEXT|HOME|USERPROFILE|XDG_CONFIG_HOME|XDG_DATA_HOME|APPDATA|LOCALAPPDATA",
    "LD_.*|DYLD_.*|GCONV_PATH|BASH_ENV|ENV|ZDOTDIR|SHELL|COMSPEC|BASH_FUNC_.*",
    "NODE_OPTIONS|NODE_PATH|NPM_CONFIG_.*|YARN_.*|PNPM_.*|BUN_.*|DENO_.*|TSX_.*|TS_NODE_.*",
    "PYTHON.*|VIRTUAL_ENV|PIP_.*|UV_.*|PIPX_.*|CONDA_.*",
    "RUBYOPT|RUBYLIB|GEM_.*|BUNDLE_.*|PERL5.*|PERLLIB|PHPRC|PHP_INI_SCAN_DIR|LUA_.*",
    "JAVA_.*|_JAVA_OPTIONS|JDK_.*|CLASSPATH|DOTNET_.*|COR_.*|CORECLR_.*|GOPATH|GOROOT|GOBIN|GOPROXY|GOFLAGS|GOENV|GOTOOLCHAIN|CARGO_.*|RUSTC.*|RUSTUP_.*|RUSTFLAGS|GIT_.*|DOCKER_.*|KUBECONFIG",
  ].join("|")})$`,
  "i",
);

function codeVariables(env: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(env)
    .filter(([name]) => codeVariable.test(name) && !isSecretName(name))
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
}

/**
 * What approvals of a server's tools are bound to: how it is started or reached, with the environment and the headers,
 * since these can turn the same command into another program. For secrets only the name counts, so that renewing a token
 * does not revoke approvals.
 */
export function serverIdentity(spec: McpServerSpec): string {
  if (spec.type !== "stdio") return digestOf({ url: spec.url, headers: withoutSecrets(spec.headers, (name) => name.toLowerCase()) });
  const { command, args, cwd = "", env } = spec;
  return digestOf({ command, args, cwd, env: withoutSecrets(env, (name) => name) });
}

function withoutSecrets(values: Readonly<Record<string, string>>, named: (name: string) => string): readonly (readonly string[])[] {
  const entries = Object.entries(values).map(([name, value]) => (isSecretName(name) ? [named(name)] : [named(name), value]));
  return entries.sort(([a = ""], [b = ""]) => (a < b ? -1 : Number(a > b)));
}

interface CachedValue<T> {
  readonly definition: unknown;
  readonly facts: string;
  readonly value: T;
}

/**
 * Returns the same value for an equal definition as in the round before, so that unchanged things stay the same objects
 * over every refresh of a list.
 */
export class DefinitionCache<T> {
  #before: Map<string, CachedValue<T>> = new Map();
  #now: Map<string, CachedValue<T>> = new Map();

  /** `facts`: everything that the value depends on besides the definition. Each id at most once in a round. */
  getOrCreate(id: string, definition: unknown, facts: string, make: () => T): T {
    const known = this.#before.get(id);
    const isSame = known !== undefined && known.facts === facts && isSameJson(known.definition, definition);
    const value = isSame ? known.value : make();
    this.#now.set(id, { definition, facts, value });
    return value;
  }

  /** Ends a round: values that were not used in it are forgotten. */
  sweep(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }
}

/** The earlier of two lists if both hold the same: lists are compared by identity elsewhere. */
export function sameList<T>(before: readonly T[], next: readonly T[], isSame: (a: T, b: T) => boolean = isIdentical): readonly T[] {
  if (before.length === next.length && before.every((item, index) => isSame(item, next[index] as T))) return before;
  return Object.freeze([...next]);
}

function isIdentical(a: unknown, b: unknown): boolean {
  return a === b;
}

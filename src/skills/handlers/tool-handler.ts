import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { type Diagnostic, formatDiagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { waitFor } from "../../base/wait.ts";
import type { ToolJson } from "../../formats/skills/tool-json.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import { boundedFetch, type FetchFailure, type FetchOutcome, type FetchRequest } from "../../io/net/bounded-fetch.ts";
import { runProgram } from "../../io/process/child-process.ts";
import type { Scope } from "../../io/scope.ts";
import { handlerIn, isToolLike } from "../../tools/define/define-tool.ts";
import type { AddressRules, CallReach, ToolContext, ToolInvocation } from "../../tools/tool.ts";
import type { CheckedFolder, FolderView } from "../../trust/checked-folder.ts";
import { pathInSkill } from "../load/skill-path.ts";
import type { ToolEntry } from "../load/tool-entries.ts";
import { adaptExecute, registerDisposer } from "../load/tool-module.ts";
import type { EncloseProgram, HandlerPick } from "../load/tool-runner.ts";
import { type Arguments, fillAddress, fillElement, fillElements, fillJson, fillText, optionArgument } from "./fill-template.ts";

type Handler = (args: Arguments, invocation: ToolInvocation, context: ToolContext) => unknown;

interface HandlerPlace {
  readonly folder: string;
  /** Receives the files of the handler, now and when it runs. */
  readonly files: Set<string>;
  readonly loader: ModuleLoader;
  readonly scope: Scope;
  readonly importTimeout: number;
  /** See `ToolRights`. */
  readonly isUnrestricted: boolean;
  readonly view?: FolderView | undefined;
  /** If a signature is required: the only files that may be used. */
  readonly tree?: CheckedFolder | undefined;
  /** Runs modules elsewhere than in this process. */
  isolated?: ((file: string, pick: HandlerPick) => Handler | undefined) | undefined;
  /** Keeps programs to what the skill declares. */
  readonly enclose?: EncloseProgram | undefined;
}

/**
 * The handler of a tool JSON: its `handler`, otherwise the module of the same name beside it, otherwise none. Throws `HostError` for a
 * module that is missing or does not parse.
 */
export function handlerOf(tool: ToolJson, entry: ToolEntry, place: HandlerPlace): Handler | undefined {
  const spec = tool.handler;
  if (spec?.kind === "command") return createCommandHandler(spec, place.folder, { checked: programsOf(place), enclose: place.enclose });
  if (spec?.kind === "http") return createHttpHandler(spec, { guardsPrivateNetworks: !place.isUnrestricted });
  if (spec?.kind === "mcp") return (args, _invocation, context) => context.callTool(`${spec.server}/${spec.tool}`, args);
  if (spec?.kind === "module") return moduleHandler(moduleFile(spec.module, entry, place), tool.definition.name, spec.export, place);
  const sibling = entry.kind === "json" ? entry.sibling : undefined;
  return sibling === undefined ? undefined : moduleHandler(sibling, tool.definition.name, undefined, place);
}

function programsOf({ tree, scope }: HandlerPlace): CheckedPrograms | undefined {
  return tree && CheckedPrograms.of(tree, scope);
}

/** A path is relative to its tool JSON; in a manifest, to the skill. */
function moduleFile(path: string, entry: ToolEntry, { folder, view }: HandlerPlace): string {
  const directory = entry.kind === "inline" ? "" : entry.path.replace(/[^/]*$/, "");
  const within = pathInSkill(folder, directory + path, entry.file, view);
  if (!within.ok) throw new HostError(within.diagnostic.code, within.diagnostic.message);
  return within.path;
}

/**
 * Captures the module's sources now, so that errors show immediately and the published version can run later even if the files change.
 * Runs the module at the first call; concurrent first calls share one run, and a failed run is not kept.
 */
function moduleHandler(file: string, toolName: string, exportName: string | undefined, place: HandlerPlace): Handler {
  const prepared = place.loader.prepare(file, place.tree);
  for (const path of prepared.files) place.files.add(path);
  const isolated = place.isolated?.(file, { tool: toolName, ...(exportName !== undefined && { export: exportName }) });
  if (isolated !== undefined) return isolated;
  let ready: Handler | undefined;
  let loading: Promise<Handler> | undefined;

  const load = async (): Promise<Handler> => {
    try {
      const expired = () => new HostError("MODULE_TIMEOUT", `${file} did not finish loading within ${place.importTimeout} ms of waiting.`);
      const limits = { milliseconds: place.importTimeout, countsWaiting: true, signal: place.scope.signal, expired };
      const loaded = await waitFor(prepared.evaluate(place.scope), limits);
      for (const path of loaded.files) place.files.add(path);
      ready = pickHandler(loaded.exports, toolName, exportName, file);
      registerDisposer(loaded.exports["dispose"], place.scope);
      return ready;
    } finally {
      loading = undefined;
    }
  };
  return (args, invocation, context) => {
    if (ready) return ready(args, invocation, context);
    loading ??= load();
    return loading.then((handler) => handler(args, invocation, context));
  };
}

/**
 * The named export; otherwise the default export, `handler`, an export with the tool's name, or `execute`. A tool counts as its handler.
 */
export function pickHandler(
  exports: Readonly<Record<string, unknown>>,
  toolName: string,
  exportName: string | undefined,
  file: string,
): Handler {
  const names = exportName === undefined ? ["default", "handler", toolName, "execute"] : [exportName];
  for (const name of names) {
    const value = Object.hasOwn(exports, name) ? exports[name] : undefined;
    const own = isToolLike(value) ? handlerIn(value) : undefined;
    if (own !== undefined) return own as Handler;
    if (typeof value === "function")
      return name === "execute" && exportName === undefined ? adaptExecute(value as never) : (value as Handler);
  }
  const wanted = exportName === undefined ? "a default export that is a function" : `a function named "${exportName}"`;
  throw new HostError("MODULE_NO_HANDLER", `${file} has no handler for the tool "${toolName}". Add ${wanted}.`);
}

interface CommandSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const maxOutputBytes = 10 * 1024 * 1024;

interface ProgramOptions {
  readonly checked?: Pick<CheckedPrograms, "open"> | undefined;
  readonly enclose?: EncloseProgram | undefined;
}

/**
 * A handler that runs a program with an argument vector: never in a shell, with a minimal environment plus `env`. The working directory
 * is the session's unless `cwd` names a folder relative to the skill. The program's stdout is the result; stderr goes only to the log.
 * The program and its children end with the call. An argument that the program could take for an option is refused. With `checked`,
 * `{baseDir}`, `./` and `cwd` refer to a private copy of the skill's folder. With `enclose`, the program reaches only what its skill declares.
 */
function createCommandHandler(spec: CommandSpec, skillFolder: string, { checked, enclose }: ProgramOptions = {}) {
  return async (args: Arguments, invocation: ToolInvocation, context?: Pick<ToolContext, "limits">): Promise<object> => {
    const option = optionArgument(spec.args, args);
    if (option !== undefined) return optionRefused(option);
    // Programs open the skill's files by name, so they get a copy that contains the checked bytes.
    const opened = checked?.open();
    if (opened?.ok === false) return failure("The program of this tool is not allowed to run.", formatDiagnostic(opened.diagnostic));
    const folder = opened?.folder ?? skillFolder;
    const { kind: _, ...program } = programReach(spec, args, { folder, workingDirectory: invocation.workingDirectory });
    let started = { ...program, limits: context?.limits };
    try {
      if (enclose !== undefined) started = { ...started, limits: undefined, ...(await enclose({ ...started, folder })) };
    } catch (error) {
      return failure("The program of this tool could not be run.", errorMessage(error));
    }
    const outcome = await runProgram({
      ...started,
      signal: invocation.signal,
      maxOutputBytes,
    });
    if (outcome.kind !== "exited")
      return failure("The program of this tool could not be run.", outcome.kind === "aborted" ? "aborted" : outcome.message);
    const log = outcome.stderrTail === "" ? {} : { sessionLog: outcome.stderrTail };
    const text = outcome.truncated
      ? `${outcome.stdout}\n[The output was longer than ${maxOutputBytes} bytes and was truncated here.]`
      : outcome.stdout;
    if (outcome.code === 0) return { textResultForLlm: text, resultType: "success", ...log };
    const how = outcome.code === null ? `was killed by ${outcome.signal}` : `exited with code ${outcome.code}`;
    return { ...failure([`The program of this tool ${how}.`, text].filter((part) => part !== "").join("\n"), outcome.stderrTail), ...log };
  };
}

/** The program of a call with its arguments filled in. `folder` is the skill's folder, or a copy of it. */
export function programReach(
  spec: CommandSpec,
  args: Arguments,
  { folder, workingDirectory }: { readonly folder: string; readonly workingDirectory: string },
): Extract<CallReach, { kind: "program" }> {
  const stdin = spec.stdin === undefined ? undefined : fillElement(spec.stdin, args, folder);
  return {
    kind: "program",
    command: commandPath(spec.command, folder),
    args: fillElements(spec.args, args, folder),
    cwd: spec.cwd === undefined ? workingDirectory : resolve(folder, spec.cwd),
    env: Object.fromEntries(Object.entries(spec.env ?? {}).map(([name, value]) => [name, value.replaceAll("{baseDir}", folder)])),
    ...(stdin === undefined ? {} : { stdin }),
  };
}

/** `./x` and `{baseDir}/x` are files of the skill; a bare name is looked up on the PATH. */
function commandPath(command: string, folder: string): string {
  const expanded = command.replaceAll("{baseDir}", folder);
  return expanded.startsWith(".") && !isAbsolute(expanded) ? resolve(folder, expanded) : expanded;
}

function optionRefused(name: string): object {
  const text = `The argument "${name}" begins with a hyphen, so the program of this tool could treat it as an option. Call the tool with another value, such as ./-name for a file.`;
  const advice = `The placeholder \${${name}} in "args" has no "--" before it. Add "--" there if the program supports it, or pass the value on stdin.`;
  return failure(text, advice);
}

function failure(textResultForLlm: string, error: string): object {
  return { textResultForLlm, resultType: "failure", error };
}

interface HttpSpec {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const maxBytes = 10 * 1024 * 1024;

interface HttpHandlerOptions {
  /** A public host name must not resolve to a private address, unless a rule of the session allows that host by name. Default: false. */
  readonly guardsPrivateNetworks?: boolean;
}

/**
 * A handler that makes one HTTP request. Arguments cannot change the structure of the URL; redirects stay on the same host and within the
 * rules of the session. The response body is the result, and a status of 400 or more is a failure. @internal Exported for tests.
 */
export function createHttpHandler(spec: HttpSpec, { guardsPrivateNetworks = false }: HttpHandlerOptions = {}) {
  return async (args: Arguments, invocation: ToolInvocation, context?: Pick<ToolContext, "addressRules">): Promise<object> => {
    const { url } = httpReach(spec, args);
    if (leavesItsPlace(url))
      return { textResultForLlm: 'An argument of "." or ".." is not allowed in this tool\'s URL.', resultType: "failure" };
    const body = requestBody(spec.body, args);
    const headers = Object.fromEntries(
      Object.entries(spec.headers ?? {}).map(([name, value]) => [name, fillText(value, args, process.env)]),
    );
    const outcome = await boundedFetch({
      url,
      method: spec.method,
      headers: { accept: "application/json, text/*;q=0.9, */*;q=0.5", ...body?.headers, ...headers },
      ...(body === undefined ? {} : { body: body.text }),
      signal: invocation.signal,
      maxBytes,
      ...addressLimits(url, context?.addressRules, guardsPrivateNetworks),
    });
    if (outcome.kind === "failed") return failureOf(outcome);
    const text = outcome.truncated
      ? `${outcome.text}\n[The answer was longer than ${maxBytes} bytes and was truncated here.]`
      : outcome.text;
    const telemetry = { toolTelemetry: { httpStatus: outcome.status } };
    if (outcome.status < 400) return { textResultForLlm: text, resultType: "success", ...telemetry };
    const message = `The service of this tool answered with status ${outcome.status}.`;
    return { textResultForLlm: text === "" ? message : `${message}\n${text}`, resultType: "failure", error: message, ...telemetry };
  };
}

/** The URL of a call with its arguments and variables filled in. */
export function httpReach(spec: HttpSpec, args: Arguments): Extract<CallReach, { kind: "url" }> {
  return { kind: "url", url: fillAddress(spec.url, args, process.env) };
}

type AddressLimits = Pick<FetchRequest, "allowRedirect" | "guardsPrivateNetworks" | "allowAddress">;

/** Without rules and without a guard there is no check, which lets the runtime keep connections open. */
function addressLimits(url: string, rules: AddressRules | undefined, guardsPrivateNetworks: boolean): AddressLimits {
  const guard = guardsPrivateNetworks && rules?.names(url) !== true ? { guardsPrivateNetworks } : {};
  if (rules === undefined) return guard;
  return {
    ...guard,
    allowRedirect: ({ href }) => rules.mayFollow(url, href),
    // Rules about an IP address apply to every name that resolves to it.
    allowAddress: (address, { protocol, port }) => rules.mayFollow(url, addressUrl(address, protocol, port)),
  };
}

function addressUrl(address: string, protocol: string, port: string): string {
  return `${protocol}//${address.includes(":") ? `[${address}]` : address}${port === "" ? "" : `:${port}`}/`;
}

const failureTexts: Readonly<Partial<Record<FetchFailure, string>>> = {
  "redirect-refused": "The service of this tool redirects to a URL that is not allowed for this tool.",
  "address-refused":
    "The host of this tool resolves to an address that is not allowed, such as one of a private network. The user can allow the host with a permission rule such as url(<host>).",
};

function failureOf({ reason, message }: Extract<FetchOutcome, { kind: "failed" }>): object {
  const textResultForLlm = failureTexts[reason] ?? "The service of this tool could not be reached.";
  return { textResultForLlm, resultType: "failure", error: message };
}

/** Whether a path contains a `.` or `..` segment, plain or as %2e, which would lead to another path. */
function leavesItsPlace(url: string): boolean {
  const path = url.replace(/[?#].*$/s, "").replaceAll(/%2e/gi, ".");
  return path.split(/[\\/]/).some((segment) => segment === "." || segment === "..");
}

function requestBody(template: unknown, args: Arguments): { text: string; headers: Record<string, string> } | undefined {
  if (template === undefined) return undefined;
  const filled = fillJson(template, args);
  if (typeof filled === "string") return { text: filled, headers: { "content-type": "text/plain; charset=utf-8" } };
  return { text: JSON.stringify(filled ?? null), headers: { "content-type": "application/json" } };
}

type OpenedPrograms = { readonly ok: true; readonly folder: string } | { readonly ok: false; readonly diagnostic: Diagnostic };

/**
 * A private copy of a checked folder for programs, because the system opens them, and what they read, by name. Created at the first call,
 * shared by the tools of the skill, and deleted with the last of them.
 */
class CheckedPrograms {
  static readonly #known = new WeakMap<CheckedFolder, CheckedPrograms>();
  readonly #tree: CheckedFolder;
  #folder: string | undefined;
  #users = 0;

  private constructor(tree: CheckedFolder) {
    this.#tree = tree;
  }

  /** Returns the copy of a folder, which lives until the scopes of all its users have ended. */
  static of(tree: CheckedFolder, scope: Scope): CheckedPrograms {
    const programs = CheckedPrograms.#known.get(tree) ?? new CheckedPrograms(tree);
    CheckedPrograms.#known.set(tree, programs);
    programs.#users++;
    scope.onDispose(() => programs.#release());
    return programs;
  }

  /** Checks the skill's folder again: a folder that no longer matches its signature must not start a program, though the copy could. */
  open(): OpenedPrograms {
    const diagnostic = this.#tree.recheck();
    if (diagnostic !== undefined) return { ok: false, diagnostic };
    if (this.#folder !== undefined) return { ok: true, folder: this.#folder };
    const folder = mkdtempSync(join(tmpdir(), "skillhost-checked-"));
    const fault = copyFiles(this.#tree, folder);
    if (fault === undefined) {
      this.#folder = folder;
      return { ok: true, folder };
    }
    rmSync(folder, { recursive: true, force: true });
    return { ok: false, diagnostic: fault };
  }

  #release(): void {
    this.#users--;
    if (this.#users > 0 || this.#folder === undefined) return;
    rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }
}

function copyFiles(tree: CheckedFolder, target: string): Diagnostic | undefined {
  try {
    for (const path of tree.files.keys()) {
      const source = join(tree.folder, path);
      const read = tree.read(source);
      if (!read.ok) return read.diagnostic;
      const file = join(target, path);
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      writeFileSync(file, read.bytes);
      // No signature covers the mode, and it does not change the bytes of the file.
      chmodSync(file, 0o600 | (statSync(source, { throwIfNoEntry: false })?.mode ?? 0));
    }
    return undefined;
  } catch (error) {
    const message = `The verified files cannot be copied for this program: ${errorMessage(error)}. Free space in ${tmpdir()}, or set TMPDIR to another folder.`;
    return { severity: "error", code: "TRUST_COPY", file: tree.folder, message };
  }
}

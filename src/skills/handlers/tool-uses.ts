import type { Diagnostic } from "../../base/diagnostic.ts";
import { isDeclaredHost, type SkillPermissions } from "../../formats/skills/skill-permissions.ts";
import type { ToolHandlerSpec } from "../../formats/skills/tool-handler-spec.ts";
import type { ToolJson } from "../../formats/skills/tool-json.ts";
import type { CallReach, PermissionRequest, ToolContext } from "../../tools/tool.ts";
import type { ToolRights } from "../load/skill-definitions.ts";
import { type Arguments, fillElement, fillElements, fillVisibleAddress, scriptPlaceholder } from "./fill-template.ts";
import { httpReach, programReach } from "./tool-handler.ts";

type DeclarativeSpec = Extract<ToolHandlerSpec, { kind: "command" | "http" }>;

/** What a declarative tool uses on the machine, one complete line per resource, for comparison and approval. */
export function usesOf(spec: ToolHandlerSpec | undefined): readonly string[] {
  if (spec?.kind === "command") {
    return [
      `runs: ${[spec.command, ...spec.args].map(quoted).join(" ")}`,
      ...(spec.stdin === undefined ? [] : [`writes to it: ${JSON.stringify(spec.stdin)}`]),
      ...(spec.cwd === undefined ? [] : [`in the folder: ${spec.cwd}`]),
      ...Object.entries(spec.env ?? {}).map(([name, value]) => `sets: ${name}=${value}`),
    ];
  }
  if (spec?.kind === "http") {
    const names = variablesOf(spec);
    return [
      `requests: ${spec.method} ${spec.url}`,
      ...Object.entries(spec.headers ?? {}).map(([name, value]) => `header: ${name}: ${value}`),
      ...(spec.body === undefined ? [] : [`body: ${JSON.stringify(spec.body)}`]),
      ...(names.length === 0 ? [] : [`sends variables of the environment: ${names.join(", ")}`]),
    ];
  }
  return spec?.kind === "mcp" ? [`calls: ${spec.server}/${spec.tool}`] : [];
}

/** The host's environment variables that a handler reads. */
function variablesOf(spec: ToolHandlerSpec): readonly string[] {
  if (spec.kind !== "http") return [];
  const texts = [spec.url, ...Object.values(spec.headers ?? {})];
  return [...new Set(texts.flatMap((text) => [...text.matchAll(/\$\{env:([A-Za-z_][\w-]*)/g)].map(([, name]) => name!)))];
}

/**
 * Describes a call for the permission decision: the program, or the URL and the variables, in full. Never contains the value of a
 * variable.
 */
export function describeUse(spec: DeclarativeSpec, description: string | undefined, folder: string) {
  const names = variablesOf(spec);
  return (args: Arguments): PermissionRequest => ({
    kind: "custom-tool",
    toolDescription: description ?? "",
    args,
    ...(spec.kind === "command"
      ? { fullCommandText: commandText(spec, args, folder) }
      : { method: spec.method, url: fillVisibleAddress(spec.url, args) }),
    ...(names.length > 0 && { environment: names.join(", ") }),
  });
}

/** What a call reaches, for rules: the URL with the values of variables, or the program with its argument vector. */
export function reachOfUse(spec: DeclarativeSpec, folder: string) {
  return (args: Arguments, { invocation }: ToolContext): CallReach =>
    spec.kind === "http" ? httpReach(spec, args) : programReach(spec, args, { folder, workingDirectory: invocation.workingDirectory });
}

function commandText({ command, args: elements, stdin }: Extract<DeclarativeSpec, { kind: "command" }>, args: Arguments, folder: string) {
  const line = [command, ...fillElements(elements, args, folder)].map(quoted).join(" ");
  const input = stdin === undefined ? undefined : fillElement(stdin, args, folder);
  return input === undefined ? line : `${line}\n${input}`;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./{}$-]+$/.test(word) ? word : JSON.stringify(word);
}

/** Why a tool must not be used: its handler reaches something undeclared, or something that is unknown before the call. */
export function useFaults(
  { definition, handler }: ToolJson,
  file: string,
  { permissions, rights }: { readonly permissions: SkillPermissions | undefined; readonly rights: ToolRights },
): readonly Diagnostic[] {
  if (handler === undefined) return [];
  const faults = [...(rights.isUnrestricted ? [] : restrictionFaults(handler, permissions)), ...listFaults(handler, permissions)];
  return faults.map(({ code, message }) => ({
    severity: "error",
    code,
    file,
    message: `Tool "${definition.name}" is ignored: ${message}`,
  }));
}

interface Fault {
  readonly code: string;
  readonly message: string;
}

function restrictionFaults(spec: ToolHandlerSpec, permissions: SkillPermissions | undefined): readonly Fault[] {
  const script = spec.kind === "command" ? scriptPlaceholder(spec) : undefined;
  const undeclared = variablesOf(spec).filter((name) => permissions?.env.includes(name) !== true);
  return [
    ...(undeclared.length === 0 ? [] : [undeclaredVariables(undeclared)]),
    ...(spec.kind === "http" && hostnameOf(spec.url) === undefined ? [templatedHost] : []),
    ...(script === undefined ? [] : [writtenScript(script)]),
  ];
}

/** A declared list restricts every kind of skill. */
function listFaults(spec: ToolHandlerSpec, permissions: SkillPermissions | undefined): readonly Fault[] {
  const host = spec.kind === "http" ? hostnameOf(spec.url) : undefined;
  const { hosts, programs } = permissions ?? {};
  if (host !== undefined && hosts !== undefined && !isDeclaredHost(hosts, host)) return [notListed("host", host, "hosts")];
  if (spec.kind === "command" && programs !== undefined && !programs.includes(spec.command))
    return [notListed("program", spec.command, "programs")];
  return [];
}

/** Undefined when the host depends on a variable. Arguments are not allowed there. */
function hostnameOf(url: string): string | undefined {
  const authority = /^https?:\/\/([^/?#\\]*)/i.exec(url)?.[1];
  if (authority === undefined || authority.includes("${")) return undefined;
  const plain = `http://${authority}/`;
  return URL.canParse(plain) ? new URL(plain).hostname : undefined;
}

function undeclaredVariables(names: readonly string[]): Fault {
  const [list, them] = [names.map((name) => `"${name}"`).join(", "), names.length === 1 ? "the variable" : "the variables"];
  const message = `it sends ${them} ${names.join(", ")} of this machine's environment, but its skill.json does not declare this. Add "permissions": { "env": [${list}] } to skill.json.`;
  return { code: "TOOL_ENV_UNDECLARED", message };
}

const templatedHost: Fault = {
  code: "TOOL_HOST_TEMPLATE",
  message:
    'its host comes from the environment, so its URL is not known in advance. Write the host in "url". Only a user\'s own skills may use a variable.',
};

function writtenScript(placeholder: string): Fault {
  const example = '["-c", "git log -- \\"$1\\"", "--", "${ref}"]';
  const message = `${placeholder} is the script of an interpreter, so a model could run any code. Write the script out, and pass arguments as positional parameters, such as ${example}. Only a user's own skills may do this.`;
  return { code: "TOOL_SCRIPT_PLACEHOLDER", message };
}

function notListed(what: string, value: string, key: "hosts" | "programs"): Fault {
  const shown = JSON.stringify(value.slice(0, 200));
  const message = `the ${what} ${shown} is not listed in "${key}" of "permissions" in skill.json. Add it there, or fix the tool.`;
  return { code: "TOOL_USE_UNDECLARED", message };
}

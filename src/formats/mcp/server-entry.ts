import { isRecord, type Json } from "../../base/json.ts";
import type { JsonPath } from "../text/json-document.ts";
import type { JsonComplain } from "../text/json-fields.ts";
import { type DialectRules, expandVariables, type FilledField, maxValueLength, type VariableLookup } from "./mcp-dialects.ts";
import type { McpServerSpec } from "./mcp-server-spec.ts";

interface EntryOptions {
  readonly name: string;
  readonly rules: DialectRules;
  readonly lookup: VariableLookup;
  /** The description of an input, by its name. */
  readonly about: (input: string) => string | undefined;
  readonly complain: JsonComplain;
}

const maxItems = 10_000;

/**
 * Reads the members of one server's entry. An invalid value is an error, which refuses the server; null counts as absent.
 * Diagnostics never show a value, because it may be a secret.
 */
export class EntryReader {
  isRefused = false;
  /** Values that are required before the server can be started. */
  readonly needs: string[] = [];
  readonly #entry: Json;
  readonly #options: EntryOptions;
  readonly #read = new Set<string>();

  constructor(entry: Json, options: EntryOptions) {
    this.#entry = entry;
    this.#options = options;
  }

  /** The first of these keys that has a value. */
  key(...keys: readonly string[]): string | undefined {
    return keys.find((key) => this.raw(key) !== undefined);
  }

  raw(key: string): unknown {
    this.#read.add(key);
    return Object.hasOwn(this.#entry, key) ? (this.#entry[key] ?? undefined) : undefined;
  }

  text(key: string): string | undefined {
    const value = this.raw(key);
    return value === undefined || typeof value === "string" ? this.#sound(value, [key]) : this.#mustBe("text", value, [key]);
  }

  flag(key: string): boolean | undefined {
    const value = this.raw(key);
    return value === undefined || typeof value === "boolean" ? value : this.#mustBe("true or false", value, [key]);
  }

  /** A list of literal strings. */
  names(key: string): readonly string[] | undefined {
    return this.#list(key)?.flatMap((item, index) => {
      const name = typeof item === "string" ? this.#sound(item, [key, index]) : this.#mustBe("text", item, [key, index]);
      return name === undefined ? [] : [name];
    });
  }

  object(key: string): Json | undefined {
    const value = this.raw(key);
    return value === undefined || isRecord(value) ? value : this.#mustBe("an object", value, [key]);
  }

  /** A string with variables expanded. */
  filled(key: string, field: FilledField): string | undefined {
    const text = this.text(key);
    return text === undefined ? undefined : this.#fill(text, field, [key]);
  }

  /** A list of strings with variables expanded; numbers and booleans are converted to strings. */
  filledList(key: string, field: FilledField): readonly string[] | undefined {
    return this.#list(key)?.flatMap((item, index) => {
      const text = this.#scalar(item, [key, index]);
      const filled = text === undefined ? undefined : this.#fill(text, field, [key, index]);
      return filled === undefined ? [] : [filled];
    });
  }

  filledMap(key: string, field: FilledField): ReadonlyMap<string, string> | undefined {
    const object = this.object(key);
    if (object === undefined) return undefined;
    const filled = new Map<string, string>();
    for (const [name, value] of Object.entries(object).slice(0, maxItems)) {
      // As in the settings of editors, null removes a variable.
      const text = value === null ? undefined : this.#scalar(value, [key, name]);
      const whole = text === undefined ? undefined : this.#fill(text, field, [key, name]);
      if (whole !== undefined) filled.set(name, whole);
    }
    if (Object.keys(object).length > maxItems)
      this.error("MCP_FIELD_TYPE", `"${key}" has more than ${maxItems} members. Remove some.`, [key]);
    return filled;
  }

  environment(name: string): string | undefined {
    return this.#options.lookup({ kind: "environment", name });
  }

  need(reason: string): void {
    if (!this.needs.includes(reason)) this.needs.push(reason);
  }

  error(code: string, message: string, path: JsonPath): undefined {
    this.isRefused = true;
    this.#report("error", code, message, path);
  }

  warn(code: string, message: string, path: JsonPath): void {
    this.#report("warning", code, message, path);
  }

  info(code: string, message: string, path: JsonPath): void {
    this.#report("info", code, message, path);
  }

  /** The keys that were not read. */
  unread(): readonly string[] {
    return Object.keys(this.#entry).filter((key) => !this.#read.has(key));
  }

  #report(severity: "error" | "warning" | "info", code: string, message: string, path: JsonPath): void {
    this.#options.complain(severity, code, `MCP server ${shown(this.#options.name)}: ${message}`, path);
  }

  #list(key: string): readonly unknown[] | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return this.#mustBe("an array of strings", value, [key]);
    if (value.length > maxItems) return this.error("MCP_FIELD_TYPE", `"${key}" has more than ${maxItems} elements. Remove some.`, [key]);
    return value;
  }

  #scalar(value: unknown, path: JsonPath): string | undefined {
    if (typeof value === "string") return this.#sound(value, path);
    if (typeof value !== "number" && typeof value !== "boolean") return this.#mustBe("text", value, path);
    this.info("MCP_FIELD_QUOTES", `${placeOf(path)} is converted to a string. Put quotes around it.`, path);
    return String(value);
  }

  #fill(text: string, field: FilledField, path: JsonPath): string | undefined {
    const { rules, lookup } = this.#options;
    if (!rules.fills.includes(field)) return text;
    const { text: filled, unresolved, undefinedForms } = expandVariables(text, rules, lookup);
    for (const variable of unresolved) {
      const { reference, placeholder } = variable;
      const at = `${shown(placeholder)} in ${placeOf(path)}`;
      if (reference.kind === "input" || reference.kind === "setting") {
        const about = this.#options.about(reference.name);
        const what = about === undefined ? "" : `: ${shown(about)}`;
        this.need(`${at} is an input that its client asks for${what}. Replace it with the value.`);
      } else if (field === "url" || field === "command") {
        this.need(`${at} has no value. ${remedyFor(reference.kind, reference.name)}`);
      } else {
        this.warn("MCP_VARIABLE_UNSET", `${at} has no value and stays unchanged. ${remedyFor(reference.kind, reference.name)}`, path);
      }
    }
    for (const form of new Set(undefinedForms)) {
      const message = `${shown(form)} in ${placeOf(path)} is not a variable form of this kind of file, so it stays unchanged.`;
      this.warn("MCP_VARIABLE_UNKNOWN", `${message} Use the value, or a variable in a supported form.`, path);
    }
    return this.#sound(filled, path);
  }

  // System interfaces end a string at NUL, so the rest would be lost silently.
  #sound(text: string | undefined, path: JsonPath): string | undefined {
    if (text === undefined) return undefined;
    if (text.includes("\0")) return this.error("MCP_FIELD_TEXT", `${placeOf(path)} contains a NUL character. Remove it.`, path);
    if (text.length <= maxValueLength) return text;
    return this.error("MCP_FIELD_TEXT", `${placeOf(path)} is longer than ${maxValueLength} characters. Shorten it.`, path);
  }

  #mustBe(expected: string, value: unknown, path: JsonPath): undefined {
    return this.error("MCP_FIELD_TYPE", `${placeOf(path)} must be ${expected}, not ${kindOf(value)}.`, path);
  }
}

function remedyFor(kind: string, name: string): string {
  if (kind === "environment") return `Set the environment variable ${name}, or replace it with the value.`;
  return "Only a client that knows this directory can expand it. Replace it with the path.";
}

/** The path of a member for messages: `"env" → "TOKEN"`. */
function placeOf(path: JsonPath): string {
  return path.map((step) => (typeof step === "number" ? `element ${step + 1}` : shown(step))).join(" → ");
}

/** The type of a value, without its content. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return typeof value === "string" ? "text" : typeof value === "number" ? "a number" : String(value);
}

/** An untrusted name or placeholder, quoted and shortened. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 99)}…` : text);
}

type ToolChoice = Pick<McpServerSpec, "tools" | "timeout" | "isDisabled" | "excludedTools">;

/** The allowed tools of a server, its timeout, and whether it is enabled. */
export function readToolChoice(entry: EntryReader): ToolChoice {
  const chosen = entry.names(entry.key("tools", "includeTools", "enabled_tools") ?? "tools");
  const excluded = entry.names(entry.key("excludeTools", "excludedTools", "disabled_tools") ?? "excludeTools");
  return {
    tools: chosen === undefined || chosen.includes("*") ? undefined : Object.freeze([...new Set(chosen)]),
    ...(excluded !== undefined && excluded.length > 0 && { excludedTools: Object.freeze([...new Set(excluded)]) }),
    timeout: readTimeout(entry),
    isDisabled: entry.flag(entry.key("disabled", "isDisabled") ?? "disabled") === true || entry.flag("enabled") === false,
  };
}

// The longest delay of a timer.
const maxTimeout = 2_147_483_647;

function readTimeout(entry: EntryReader): number | undefined {
  const key = entry.key("timeout", "tool_timeout_sec");
  const value = key === undefined ? undefined : entry.raw(key);
  if (key === undefined) return undefined;
  if (typeof value === "number" && value > 0) return Math.min(Math.ceil(key === "timeout" ? value : value * 1_000), maxTimeout);
  const unit = key === "timeout" ? "milliseconds" : "seconds";
  entry.warn("MCP_TIMEOUT_INVALID", `"${key}" must be a positive number of ${unit}, so it is ignored.`, [key]);
  return undefined;
}

/** Keys of other clients that change a server's behaviour there and have no effect here. */
const unsupported: Readonly<Record<string, string>> = {
  envFile: 'Environment files are not read. Put the variables into "env".',
  headersHelper: 'Commands that print headers are not run. Put the headers into "headers".',
  authProviderType: 'This sign-in method is not supported. Set an Authorization header in "headers" if the server needs one.',
  sandbox: "The server runs without a sandbox.",
  sandboxEnabled: "The server runs without a sandbox.",
};

/** Keys of other clients for settings that are not part of a server's configuration here. */
const decidedElsewhere: Readonly<Record<string, string>> = {
  trust: "whether a call needs permission",
  alwaysAllow: "whether a call needs permission",
  autoApprove: "whether a call needs permission",
  startup_timeout_sec: "how long connecting may take",
  startup_timeout_ms: "how long connecting may take",
};

const annotations = ["id", "name", "displayName", "title", "description", "version", "$schema"];
const localOnly = ["command", "args", "env", "environment", "env_vars", "cwd", "workingDirectory", "working_directory"];
const remoteOnly = [
  "url",
  "httpUrl",
  "serverUrl",
  "headers",
  "http_headers",
  "env_http_headers",
  "bearer_token_env_var",
  "oauth",
  "oauth_resource",
];

/** Reports keys without effect. */
export function reportRest(entry: EntryReader, type: McpServerSpec["type"]): void {
  for (const key of [...annotations, "type", "transport"]) entry.raw(key);
  const unread = new Set(entry.unread());
  const foreign = (type === "stdio" ? remoteOnly : localOnly).filter((key) => entry.raw(key) !== undefined);
  if (foreign.length > 0)
    entry.warn("MCP_KEYS_UNUSED", `${listed(foreign)} does not apply to a server of type "${type}". Remove it, or fix the type.`, [
      foreign[0]!,
    ]);
  const unknown: string[] = [];
  for (const key of unread) {
    if (foreign.includes(key) || entry.raw(key) === undefined) continue;
    if (Object.hasOwn(unsupported, key)) entry.warn("MCP_KEY_UNSUPPORTED", `"${key}" has no effect here. ${unsupported[key]}`, [key]);
    else if (Object.hasOwn(decidedElsewhere, key))
      entry.info("MCP_KEY_UNSUPPORTED", `"${key}" has no effect here: ${decidedElsewhere[key]} is configured elsewhere.`, [key]);
    else unknown.push(key);
  }
  if (unknown.length > 0) entry.info("MCP_KEYS_UNKNOWN", `${listed(unknown)}: unknown key, ignored.`, [unknown[0]!]);
}

function listed(keys: readonly string[]): string {
  const names = keys.slice(0, 20).map((key) => JSON.stringify(key.slice(0, 60)));
  return keys.length > names.length ? `${names.join(", ")} and ${keys.length - names.length} more` : names.join(", ");
}

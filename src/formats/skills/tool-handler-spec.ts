import { isRecord } from "../../base/json.ts";
import type { JsonSchema } from "../../tools/tool.ts";
import type { JsonPath } from "../text/json-document.ts";
import { createFieldReader, describe, type FieldReader, type JsonComplain, pathFault } from "../text/json-fields.ts";

/** The handler of a tool in its JSON definition. */
export type ToolHandlerSpec = ModuleHandlerSpec | CommandHandlerSpec | HttpHandlerSpec | McpHandlerSpec;

/** A function of a module; the path is relative to the declaring file. */
interface ModuleHandlerSpec {
  readonly kind: "module";
  readonly module: string;
  /** The name of the export. Absent: the default export. */
  readonly export?: string;
}

/**
 * A program with its argument vector. An element of `args`, or `stdin`, that consists of `${param}` is replaced by that
 * argument's value.
 */
interface CommandHandlerSpec {
  readonly kind: "command";
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** One HTTP request. `${param}` is replaced in the path and query of `url`, in headers, and as a complete value in `body`. */
interface HttpHandlerSpec {
  readonly kind: "http";
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A tool of an MCP server, called with the same arguments. */
interface McpHandlerSpec {
  readonly kind: "mcp";
  readonly server: string;
  readonly tool: string;
}

const faultCode = "TOOL_HANDLER";
const maxUrlLength = 8_192;
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Reads the `handler` of a tool's JSON. Undefined after an error. */
export function readToolHandler(value: unknown, parameters: JsonSchema | undefined, complain: JsonComplain): ToolHandlerSpec | undefined {
  const forms = { module: readModule, command: readCommand, http: readHttp, mcp: readMcp };
  const given = isRecord(value) ? Object.keys(forms).filter((form) => Object.hasOwn(value, form)) : [];
  if (!isRecord(value) || given.length !== 1) {
    const found = isRecord(value) ? (given.length === 0 ? "none of them" : given.join(" and ")) : describe(value);
    complain(
      "error",
      faultCode,
      `"handler" must be an object with exactly one of "module", "command", "http" and "mcp"; this has ${found}.`,
      ["handler"],
    );
    return undefined;
  }
  const path = ["handler"];
  const form = given[0] as keyof typeof forms;
  return forms[form]({
    fields: createFieldReader(value, complain, { code: faultCode, path }),
    path,
    complain,
    check: createPlaceholderCheck(parameters, complain),
  });
}

interface HandlerReading {
  readonly fields: FieldReader;
  readonly path: readonly string[];
  readonly complain: JsonComplain;
  readonly check: PlaceholderCheck;
}

function readModule({ fields, path, complain }: HandlerReading): ModuleHandlerSpec | undefined {
  onlyKeys(fields, ["module", "export"], path, complain);
  const module = fields.text("module");
  const fault = module === undefined ? undefined : pathFault(module, { up: true });
  if (fault !== undefined) complain("error", fault.code, `In "module": ${fault.message}`, [...path, "module"]);
  const name = fields.text("export");
  if (name === "") fields.wrong("export", '"export" is empty. Name an export of the module, or remove the key to use the default one.');
  return module === undefined ? undefined : { kind: "module", module, ...(name !== undefined && { export: name }) };
}

function readCommand({ fields, path, complain, check }: HandlerReading): CommandHandlerSpec | undefined {
  onlyKeys(fields, ["command", "args", "stdin", "cwd", "env"], path, complain);
  const command = fields.text("command");
  const rest = { stdin: fields.text("stdin"), cwd: fields.text("cwd"), env: fields.texts("env") };
  if (command?.trim() === "") fields.wrong("command", '"command" is empty. Set it to a program, or to a file of the skill as ./name.');
  const args = (fields.list("args") ?? []).filter((arg, index): arg is string => {
    if (typeof arg !== "string")
      complain("error", faultCode, `"args" must contain only strings, not ${describe(arg)}. Put quotes around it.`, [
        ...path,
        "args",
        index,
      ]);
    return typeof arg === "string";
  });
  const everything = [command, ...args, rest.stdin, rest.cwd, ...Object.entries(rest.env ?? {}).flat()];
  if (everything.some((text) => text?.includes("\0")))
    complain("error", faultCode, "Arguments of programs cannot contain NUL characters. Remove it.", path);
  for (const [index, arg] of args.entries()) check.whole(arg, [...path, "args", index]);
  if (rest.stdin !== undefined) check.whole(rest.stdin, [...path, "stdin"]);
  for (const [key, text] of [
    ["command", command],
    ["cwd", rest.cwd],
  ] as const)
    check.none(text, [...path, key]);
  for (const [name, text] of Object.entries(rest.env ?? {})) check.none(text, [...path, "env", name]);
  const fault = rest.cwd === undefined ? undefined : pathFault(rest.cwd);
  if (fault !== undefined) complain("error", fault.code, `In "cwd": ${fault.message}`, [...path, "cwd"]);
  return command === undefined ? undefined : { kind: "command", command, args, ...defined(rest) };
}

function readHttp({ fields: outer, path: outerPath, complain, check }: HandlerReading): HttpHandlerSpec | undefined {
  onlyKeys(outer, ["http"], outerPath, complain);
  const value = outer.object("http");
  if (value === undefined) return undefined;
  const path = [...outerPath, "http"];
  const fields = createFieldReader(value, complain, { code: faultCode, path });
  onlyKeys(fields, ["method", "url", "headers", "body"], path, complain);
  const url = fields.text("url");
  const method = readMethod(fields);
  const headers = readHeaders(fields, path, complain);
  if (url === undefined && !fields.has("url")) fields.wrong("url", '"http" needs a "url".');
  if (url !== undefined) checkUrl(url, fields, check, path);
  for (const [name, text] of Object.entries(headers ?? {})) check.within(text, [...path, "headers", name]);
  check.values(fields.raw("body"), [...path, "body"]);
  return url === undefined || method === undefined
    ? undefined
    : { kind: "http", method, url, ...defined({ headers, body: fields.raw("body") }) };
}

function readMethod(fields: FieldReader): string | undefined {
  const method = (fields.text("method") ?? (fields.has("method") ? undefined : "GET"))?.toUpperCase();
  if (method === undefined) return undefined;
  if (!methods.includes(method)) return fields.wrong("method", `"method" must be one of ${methods.join(", ")}.`);
  if (fields.has("body") && (method === "GET" || method === "HEAD"))
    return fields.wrong("body", `A ${method} request cannot have a body. Use POST, or put the values into the URL.`);
  return method;
}

function readHeaders(fields: FieldReader, path: readonly string[], complain: JsonComplain): Readonly<Record<string, string>> | undefined {
  const headers = fields.texts("headers");
  for (const [name, text] of Object.entries(headers ?? {})) {
    if (/^[\w!#$%&'*+.^`|~-]+$/.test(name) && !/[\r\n\0]/.test(text)) continue;
    complain(
      "error",
      faultCode,
      `The header ${JSON.stringify(name.slice(0, 60))} cannot be sent. Its name must be a token, and its value a single line.`,
      [...path, "headers", name],
    );
  }
  return headers;
}

// The host must not be an argument, because the model would choose the recipient of the request and its headers.
function checkUrl(url: string, fields: FieldReader, check: PlaceholderCheck, path: readonly string[]): void {
  if (url.length > maxUrlLength) {
    fields.wrong("url", `The URL has ${url.length} characters; at most ${maxUrlLength} are allowed.`);
    return;
  }
  check.within(url, [...path, "url"]);
  if (url.startsWith("${env:")) return;
  const host = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
  if (host === undefined) fields.wrong("url", '"url" must begin with https:// or http://.');
  else if (/\$\{(?!env:)/.test(host))
    fields.wrong("url", "The host of the URL cannot be an argument. Write it out, or use an env: placeholder.");
  else if (!URL.canParse(url.replace(/\$\{[^}]*\}/g, "1"))) fields.wrong("url", `${JSON.stringify(url.slice(0, 100))} is not a valid URL.`);
}

function readMcp({ fields: outer, path, complain }: HandlerReading): McpHandlerSpec | undefined {
  onlyKeys(outer, ["mcp"], path, complain);
  const value = outer.object("mcp");
  if (value === undefined) return undefined;
  const fields = createFieldReader(value, complain, { code: faultCode, path: [...path, "mcp"] });
  onlyKeys(fields, ["server", "tool"], [...path, "mcp"], complain);
  const [server, tool] = ["server", "tool"].map((key) => {
    const text = fields.text(key);
    if (text === "" || !fields.has(key))
      fields.wrong(key, `"mcp" needs "${key}": the name of ${key === "server" ? "a server" : "one of its tools"}.`);
    return text;
  });
  return server === undefined || tool === undefined ? undefined : { kind: "mcp", server, tool };
}

function onlyKeys(fields: FieldReader, known: readonly string[], path: readonly string[], complain: JsonComplain): void {
  for (const key of fields.others(known).slice(0, 10)) {
    complain("warning", "TOOL_HANDLER_KEY", `The key ${JSON.stringify(key.slice(0, 60))} is unknown. The keys are ${known.join(", ")}.`, [
      ...path,
      key,
    ]);
  }
}

function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** Checks the `${param}` of a handler against the tool's parameters, and reports warnings. */
interface PlaceholderCheck {
  /** Text that is replaced only if it consists of a single placeholder. */
  whole(text: string, path: JsonPath): void;
  /** Text in which all placeholders are replaced, `${env:NAME}` and `${param:-default}` too. */
  within(text: string, path: JsonPath): void;
  /** Every string in a JSON value, each treated as `whole`. */
  values(value: unknown, path: JsonPath): void;
  /** Text without replacement. */
  none(text: string | undefined, path: JsonPath): void;
}

function createPlaceholderCheck(parameters: JsonSchema | undefined, complain: JsonComplain): PlaceholderCheck {
  const names = parameterNames(parameters);
  const known = (name: string, path: JsonPath): void => {
    if (names === undefined || names.includes(name)) return;
    const list = names.length === 0 ? "the tool has no parameters" : `the parameters are ${names.slice(0, 20).join(", ")}`;
    complain(
      "warning",
      "TOOL_PLACEHOLDER_UNKNOWN",
      `No parameter is named ${JSON.stringify(name.slice(0, 60))}; ${list}. Fix the placeholder or add the parameter.`,
      path,
    );
  };
  const check: PlaceholderCheck = {
    whole(text, path) {
      const name = /^\$\{([A-Za-z_][\w-]*)\}$/.exec(text)?.[1];
      if (name !== undefined) known(name, path);
      else if (text.includes("${"))
        complain(
          "warning",
          "TOOL_PLACEHOLDER_PARTIAL",
          "A placeholder is replaced only if it is the whole string. Make it a separate element.",
          path,
        );
    },
    within(text, path) {
      for (const [, name] of text.matchAll(/\$\{([A-Za-z_][\w-]*)(?::-[^}]{0,200})?\}/g)) known(name!, path);
    },
    values(value, path) {
      if (typeof value === "string") check.whole(value, path);
      else if (Array.isArray(value)) for (const [index, item] of value.entries()) check.values(item, [...path, index]);
      else if (isRecord(value)) for (const [key, item] of Object.entries(value)) check.values(item, [...path, key]);
    },
    none(text, path) {
      if (text?.includes("${"))
        complain("warning", "TOOL_PLACEHOLDER_UNUSED", "Placeholders are not replaced here; the string is used unchanged.", path);
    },
  };
  return check;
}

// Undefined: the schema is open or uses references, so any name may be valid.
function parameterNames(parameters: JsonSchema | undefined): readonly string[] | undefined {
  if (parameters === undefined) return [];
  const isOpen = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].some((keyword) => parameters[keyword] !== undefined);
  const additional = parameters["additionalProperties"];
  if (isOpen || (additional !== undefined && additional !== false)) return undefined;
  return isRecord(parameters["properties"]) ? Object.keys(parameters["properties"]) : [];
}

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { logLevels } from "../base/logger.ts";
import { createTextReport } from "../formats/skills/text-report.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { parseJson } from "../formats/text/json-document.ts";
import { createFieldReader, describe, type FieldReader, type JsonComplain } from "../formats/text/json-fields.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { isReallyInside } from "../io/confine-path.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { type Isolation, readIsolation } from "../skills/isolation/isolation-policy.ts";
import { locationOf } from "../trust/trust-file.ts";
import { CliError } from "./cli-error.ts";
import type { ConfiguredOptions } from "./command-context.ts";
import { didYouMean } from "./did-you-mean.ts";
import { readConfiguredTrust } from "./project-consent.ts";

const keys = [
  "$schema",
  "skillDirectories",
  "packageSkills",
  "disabledSkills",
  "conflicts",
  "importTimeout",
  "isolation",
  "watchBackend",
  "sessionsDirectory",
  "workingDirectory",
  "plugins",
  "mcpServers",
  "trust",
  "logLevel",
  "logFile",
];

/** Parses a configuration whose relative paths start at `folder`. Unknown and mistyped settings are errors at their place. */
function readConfig(value: unknown, folder: string, complain: JsonComplain): ConfiguredOptions {
  if (!isRecord(value)) {
    complain("error", "CONFIG_TYPE", `The configuration must be an object, not ${describe(value)}.`, []);
    return {};
  }
  const fields = createFieldReader(value, complain, { code: "CONFIG_TYPE", path: [] });
  for (const key of fields.others(keys)) {
    complain(
      "error",
      "CONFIG_UNKNOWN_KEY",
      `"${key.slice(0, 60)}" is not a configuration key.${didYouMean(key, keys)} The keys are ${keys.slice(1).join(", ")}.`,
      [key],
    );
  }
  const path = (key: string): string | undefined => {
    const text = fields.text(key);
    return text === undefined ? undefined : resolve(folder, text);
  };
  fields.object("mcpServers");
  const all = {
    skillDirectories: texts(fields, "skillDirectories", complain)?.map((entry) => fromFolder(entry, folder)),
    packageSkills: packages(fields, folder, complain),
    disabledSkills: texts(fields, "disabledSkills", complain),
    conflicts: fields.raw("conflicts"),
    importTimeout: positive(fields, "importTimeout"),
    isolation: isolation(fields),
    watchBackend: fields.oneOf("watchBackend", ["auto", "directory", "chokidar"]),
    sessionsDirectory: path("sessionsDirectory"),
    workingDirectory: path("workingDirectory"),
    plugins: plugins(fields, folder, complain),
    trust: readConfiguredTrust(fields),
    logLevel: fields.oneOf("logLevel", logLevels),
    logFile: path("logFile"),
  };
  return Object.fromEntries(Object.entries(all).filter(([, field]) => field !== undefined));
}

function isolation(fields: FieldReader): Isolation | undefined {
  if (!fields.has("isolation")) return undefined;
  try {
    return readIsolation(fields.raw("isolation"), "isolation");
  } catch (error) {
    return fields.wrong("isolation", errorMessage(error));
  }
}

function texts(fields: FieldReader, key: string, complain: JsonComplain): readonly string[] | undefined {
  return fields.list(key)?.filter((item, index): item is string => {
    if (typeof item === "string" && item !== "" && !item.includes("\0")) return true;
    complain("error", "CONFIG_TYPE", `"${key}" must contain only non-empty strings, not ${describe(item)}.`, [key, index]);
    return false;
  });
}

function packages(fields: FieldReader, folder: string, complain: JsonComplain): boolean | readonly string[] | undefined {
  const value = fields.raw("packageSkills");
  if (value === undefined || typeof value === "boolean") return value;
  if (!Array.isArray(value))
    return fields.wrong("packageSkills", `"packageSkills" must be true, false or an array, not ${describe(value)}.`);
  return texts(fields, "packageSkills", complain)?.map((entry) => fromFolder(entry, folder));
}

function plugins(fields: FieldReader, folder: string, complain: JsonComplain): ConfiguredOptions["plugins"] {
  return fields.list("plugins")?.flatMap((item, index) => {
    const use = isRecord(item) ? item["use"] : item;
    const isWhole = !isRecord(item) || Object.keys(item).every((key) => key === "use" || key === "config");
    if (typeof use === "string" && use !== "" && !use.includes("\0") && isWhole) {
      // A relative path starts at the file's folder; anything else names a package or a bundled plugin.
      const specifier = /^\.{1,2}(?:[\\/]|$)/.test(use) ? resolve(folder, use) : use;
      return [isRecord(item) ? { ...item, use: specifier } : specifier];
    }
    const advice = 'Use a path, a package name, or { "use": "…", "config": { … } }.';
    complain("error", "CONFIG_TYPE", `"plugins" cannot contain ${describe(item)}. ${advice}`, ["plugins", index]);
    return [];
  });
}

function fromFolder(entry: string, folder: string): string {
  return entry.startsWith("~") ? entry : resolve(folder, entry);
}

function positive(fields: FieldReader, key: string): number | undefined {
  const value = fields.raw(key);
  if (value === undefined || (typeof value === "number" && value > 0)) return value;
  return fields.wrong(key, `"${key}" must be a positive number, not ${describe(value)}.`);
}

/**
 * Reads the configuration: the named file, otherwise the nearest `skillhost.json` or package.json with a `skillhost` key, from the
 * working directory up to the root of its git checkout. Outside of a checkout only the working directory counts, because another user may
 * own what lies above.
 */
export function loadConfig(named: string | undefined, cwd: string): ConfiguredOptions {
  if (named !== undefined)
    return readFile(resolve(cwd, named), { isPackage: named.endsWith("package.json"), mustBeThere: true, isNamed: true }) ?? {};
  for (const folder of searchedFolders(cwd)) {
    const own = join(folder, "skillhost.json");
    const found = existsSync(own)
      ? readFile(own, { isPackage: false, mustBeThere: true, isNamed: false })
      : readFile(join(folder, "package.json"), { isPackage: true, mustBeThere: false, isNamed: false });
    if (found !== undefined) return found;
  }
  return {};
}

function searchedFolders(cwd: string): readonly string[] {
  const folders: string[] = [];
  for (let folder = cwd; ; folder = dirname(folder)) {
    folders.push(folder);
    if (existsSync(join(folder, ".git"))) return folders;
    if (dirname(folder) === folder) return [cwd];
  }
}

interface ConfigFile {
  readonly isPackage: boolean;
  readonly mustBeThere: boolean;
  readonly isNamed: boolean;
}

/** Undefined: the file has no configuration for skillhost. */
function readFile(file: string, { isPackage, mustBeThere, isNamed }: ConfigFile): ConfiguredOptions | undefined {
  if (!mustBeThere && !existsSync(file)) return undefined;
  const text = readText(file);
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  // npm reports a package.json that does not parse, unless it was named here.
  if (document === undefined) return mustBeThere ? refuse(file, report.diagnostics) : undefined;
  const value = isPackage && isRecord(document.value) ? withoutPlugin(document.value["skillhost"]) : document.value;
  if (isPackage && value === undefined) return mustBeThere ? refuse(file, [noKey(file)]) : undefined;
  const prefix = isPackage ? ["skillhost"] : [];
  const complain: JsonComplain = (severity, code, message, path) =>
    report.add(severity, code, message, document.offsetOf([...prefix, ...path]));
  const whole = readConfig(value, dirname(file), complain);
  const config = isNamed ? whole : narrowConfig(whole, file, complain);
  if (report.diagnostics.some(({ severity }) => severity === "error")) return refuse(file, report.diagnostics);
  const hasServers = isRecord(value) && Object.hasOwn(value, "mcpServers");
  const origin = { file, isNamed, diagnostics: report.diagnostics };
  return { ...config, origin, ...(hasServers && { serversIn: { file, at: [...prefix, "mcpServers"] } }) };
}

/** Settings of a package about its own plugin and about packages with skills do not configure a host. */
function withoutPlugin(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { plugin: _plugin, packages: _packages, ...rest } = value;
  return Object.keys(rest).length === 0 && Object.keys(value).length > 0 ? undefined : rest;
}

function readText(file: string): string {
  try {
    const read = readTextFile(file, maxJsonBytes);
    if (read.ok) return decodeText(read.bytes, file).text;
    return refuse(file, [read.diagnostic]);
  } catch (error) {
    if (error instanceof CliError) throw error;
    return refuse(file, [{ severity: "error", code: "CONFIG_UNREADABLE", file, message: errorMessage(error) }]);
  }
}

function noKey(file: string): Diagnostic {
  return {
    severity: "error",
    code: "CONFIG_MISSING",
    file,
    message: 'This package.json has no "skillhost" key. Add one, or choose another file.',
  };
}

function refuse(file: string, diagnostics: readonly Diagnostic[]): never {
  throw new CliError(
    "CONFIG",
    `The configuration in ${file} is not valid. Fix the problems below, or choose another file with --config.`,
    2,
    diagnostics,
  );
}

/**
 * Removes settings that a merely found configuration must not decide. It comes with a project of any author, so it cannot set a log file
 * or folders outside of the project. Each removed setting is reported at its place.
 */
function narrowConfig(config: ConfiguredOptions, file: string, complain: JsonComplain): ConfiguredOptions {
  const { logFile, sessionsDirectory, workingDirectory, ...rest } = config;
  const project = locationOf(dirname(file));
  if (logFile !== undefined) {
    const advice = "Pass it with --log-file, or pass this configuration with --config.";
    complain(
      "warning",
      "CONFIG_USER_ONLY",
      `"logFile" in a project's configuration is ignored, because it could name any of your files. ${advice}`,
      ["logFile"],
    );
  }
  const inside = (key: "sessionsDirectory" | "workingDirectory", path: string | undefined): Partial<ConfiguredOptions> => {
    if (path === undefined) return {};
    if (isReallyInside(project, path)) return { [key]: path };
    const message = `"${key}" points out of the project ${project}, so it is ignored. Use a folder inside the project, or pass this configuration with --config.`;
    complain("warning", "CONFIG_OUTSIDE", message, [key]);
    return {};
  };
  return { ...rest, ...inside("sessionsDirectory", sessionsDirectory), ...inside("workingDirectory", workingDirectory) };
}

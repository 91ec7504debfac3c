import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { createTextReport } from "../formats/skills/front-matter-fields.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { parseJson } from "../formats/text/json-document.ts";
import { isJsonObject, type JsonComplain } from "../formats/text/json-fields.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { CliError } from "./cli-error.ts";
import type { ConfiguredOptions } from "./command-context.ts";
import { narrowConfig } from "./narrow-config.ts";
import { readConfig } from "./read-config.ts";

/**
 * Reads the configuration: the file that was named, else the nearest `skillhost.json` or package.json with a `skillhost`
 * key, from the working directory up to the top of its git checkout. Outside of a checkout only the working directory
 * counts, because what lies above it may be anybody's.
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

/** Undefined: there is nothing for us in it. */
function readFile(file: string, { isPackage, mustBeThere, isNamed }: ConfigFile): ConfiguredOptions | undefined {
  if (!mustBeThere && !existsSync(file)) return undefined;
  const text = readText(file);
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  // A package.json that does not parse is npm's to complain of, unless it was named.
  if (document === undefined) return mustBeThere ? refuse(file, report.diagnostics) : undefined;
  const value = isPackage && isJsonObject(document.value) ? withoutPlugin(document.value["skillhost"]) : document.value;
  if (isPackage && value === undefined) return mustBeThere ? refuse(file, [noKey(file)]) : undefined;
  const prefix = isPackage ? ["skillhost"] : [];
  const complain: JsonComplain = (severity, code, message, path) =>
    report.add(severity, code, message, document.offsetOf([...prefix, ...path]));
  const whole = readConfig(value, dirname(file), complain);
  const config = isNamed ? whole : narrowConfig(whole, file, complain);
  if (report.diagnostics.some(({ severity }) => severity === "error")) return refuse(file, report.diagnostics);
  const hasServers = isJsonObject(value) && Object.hasOwn(value, "mcpServers");
  const origin = { file, isNamed, diagnostics: report.diagnostics };
  return { ...config, origin, ...(hasServers && { serversIn: { file, at: [...prefix, "mcpServers"] } }) };
}

/** What a package says of the plugin that it is, and of packages whose skills it uses, configures no host. */
function withoutPlugin(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
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
    message: 'This package.json has no "skillhost" key. Add one, or name another file.',
  };
}

function refuse(file: string, diagnostics: readonly Diagnostic[]): never {
  throw new CliError(
    "CONFIG",
    `The configuration in ${file} cannot be used. Fix what is listed below, or name another file with --config.`,
    2,
    diagnostics,
  );
}

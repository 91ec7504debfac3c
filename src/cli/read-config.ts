import { resolve } from "node:path";
import { logLevels } from "../base/logger.ts";
import { createFieldReader, describe, type FieldReader, isJsonObject, type JsonComplain } from "../formats/text/json-fields.ts";
import type { ConfiguredOptions } from "./command-context.ts";
import { readConfiguredTrust } from "./configured-trust.ts";
import { didYouMean } from "./nearest-names.ts";

const keys = [
  "$schema",
  "skillDirectories",
  "packageSkills",
  "disabledSkills",
  "conflicts",
  "importTimeout",
  "watchBackend",
  "sessionsDirectory",
  "workingDirectory",
  "plugins",
  "mcpServers",
  "trust",
  "logLevel",
  "logFile",
];

/** Reads a configuration whose relative paths start at `folder`. What is unknown or of the wrong type is an error at its place. */
export function readConfig(value: unknown, folder: string, complain: JsonComplain): ConfiguredOptions {
  if (!isJsonObject(value)) {
    complain("error", "CONFIG_TYPE", `The configuration must be an object, not ${describe(value)}.`, []);
    return {};
  }
  const fields = createFieldReader(value, complain, { code: "CONFIG_TYPE", path: [] });
  for (const key of fields.others(keys)) {
    complain(
      "error",
      "CONFIG_UNKNOWN_KEY",
      `"${key.slice(0, 60)}" is not a configuration key.${didYouMean(key, keys)} There are ${keys.slice(1).join(", ")}.`,
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

function texts(fields: FieldReader, key: string, complain: JsonComplain): readonly string[] | undefined {
  return fields.list(key)?.filter((item, index): item is string => {
    if (typeof item === "string" && item !== "" && !item.includes("\0")) return true;
    complain("error", "CONFIG_TYPE", `"${key}" may hold only texts that are not empty, not ${describe(item)}.`, [key, index]);
    return false;
  });
}

function packages(fields: FieldReader, folder: string, complain: JsonComplain): boolean | readonly string[] | undefined {
  const value = fields.raw("packageSkills");
  if (value === undefined || typeof value === "boolean") return value;
  if (!Array.isArray(value)) return fields.wrong("packageSkills", `"packageSkills" must be true, false or a list, not ${describe(value)}.`);
  return texts(fields, "packageSkills", complain)?.map((entry) => fromFolder(entry, folder));
}

function plugins(fields: FieldReader, folder: string, complain: JsonComplain): ConfiguredOptions["plugins"] {
  return fields.list("plugins")?.flatMap((item, index) => {
    const use = isJsonObject(item) ? item["use"] : item;
    const isWhole = !isJsonObject(item) || Object.keys(item).every((key) => key === "use" || key === "config");
    if (typeof use === "string" && use !== "" && !use.includes("\0") && isWhole) {
      // A path from the file's folder; anything else names a package, or a plugin that comes with skillhost.
      const specifier = /^\.{1,2}(?:[\\/]|$)/.test(use) ? resolve(folder, use) : use;
      return [isJsonObject(item) ? { ...item, use: specifier } : specifier];
    }
    const advice = 'Write a path, a package, or { "use": "…", "config": { … } }.';
    complain("error", "CONFIG_TYPE", `"plugins" cannot hold ${describe(item)}. ${advice}`, ["plugins", index]);
    return [];
  });
}

function fromFolder(entry: string, folder: string): string {
  return entry.startsWith("~") ? entry : resolve(folder, entry);
}

function positive(fields: FieldReader, key: string): number | undefined {
  const value = fields.raw(key);
  if (value === undefined || (typeof value === "number" && value > 0)) return value;
  return fields.wrong(key, `"${key}" must be a number above 0, not ${describe(value)}.`);
}

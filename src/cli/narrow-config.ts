import { dirname } from "node:path";
import type { JsonComplain } from "../formats/text/json-fields.ts";
import { isReallyInside } from "../io/confine-path.ts";
import { locationOf } from "../trust/folder-identity.ts";
import type { ConfiguredOptions } from "./command-context.ts";

/**
 * Leaves out what a configuration that was only found must not decide: it comes with a project, whoever wrote that, so it
 * sets no log file, and no folder outside of the project. What is left out is told at its place.
 */
export function narrowConfig(config: ConfiguredOptions, file: string, complain: JsonComplain): ConfiguredOptions {
  const { logFile, sessionsDirectory, workingDirectory, ...rest } = config;
  const project = locationOf(dirname(file));
  if (logFile !== undefined) {
    const advice = "Name it with --log-file, or name this configuration with --config.";
    complain(
      "warning",
      "CONFIG_USER_ONLY",
      `"logFile" of a project's configuration does not count: it could be any file of yours. ${advice}`,
      ["logFile"],
    );
  }
  const inside = (key: "sessionsDirectory" | "workingDirectory", path: string | undefined): Partial<ConfiguredOptions> => {
    if (path === undefined) return {};
    if (isReallyInside(project, path)) return { [key]: path };
    const message = `"${key}" leads out of the project ${project}, so it does not count. Name a folder inside it, or this configuration with --config.`;
    complain("warning", "CONFIG_OUTSIDE", message, [key]);
    return {};
  };
  return { ...rest, ...inside("sessionsDirectory", sessionsDirectory), ...inside("workingDirectory", workingDirectory) };
}

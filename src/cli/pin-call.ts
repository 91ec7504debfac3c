import { join } from "node:path";
import type { Json } from "../base/json.ts";
import { callNameFault, callsFileName } from "../formats/calls/stored-calls.ts";
import type { Host } from "../host/host.ts";
import { saveStoredCall } from "../host/stored-calls/edit-call-file.ts";
import type { ListedTool } from "../session/session.ts";
import { CliError } from "./cli-error.ts";

/** Where a call of a tool is stored. */
export interface PinPlace {
  readonly name: string;
  /** The name of the tool in its skill. */
  readonly tool: string;
  readonly folder: string;
}

/**
 * Finds where a call is stored, before it is made. Calls are stored with the skill that their tool belongs to.
 * @throws CliError `PIN_NAME`, `PIN_PLACE`
 */
export function findPinPlace(host: Host, name: string, { source, namespacedName, name: toolName }: ListedTool): PinPlace {
  const fault = callNameFault(name);
  if (fault !== undefined) throw new CliError("PIN_NAME", `${fault} Nothing was called.`, 2);
  const skill = source.kind === "skill" ? host.skills.find((each) => each.name === source.name && each.state === "active") : undefined;
  if (skill === undefined) {
    const message = `Calls are stored with a skill, and tool "${toolName}" is of ${source.kind} "${source.name}". Nothing was called.`;
    throw new CliError("PIN_PLACE", message, 2);
  }
  if (skill.package !== undefined) {
    const message = `Skill "${skill.name}" is of package ${skill.package.name}, whose files are replaced with its next version. Nothing was called.`;
    throw new CliError("PIN_PLACE", message, 2);
  }
  const prefix = `${skill.name}/`;
  return { name, folder: skill.folder, tool: namespacedName?.startsWith(prefix) ? namespacedName.slice(prefix.length) : toolName };
}

/** Stores the call. One with its name keeps its expectations. Returns the path of the file. @throws HostError as `saveStoredCall` */
export async function pinCall({ name, tool, folder }: PinPlace, args: Json, signal: AbortSignal): Promise<string> {
  const path = join(folder, callsFileName);
  await saveStoredCall({ path, inside: folder }, { name, tool, arguments: args, isAutomatic: false }, { signal, keepsRest: true });
  return path;
}

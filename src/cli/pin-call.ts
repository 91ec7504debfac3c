import { join } from "node:path";
import type { Json } from "../base/json.ts";
import { callNameFault, callsFileName } from "../formats/calls/stored-calls.ts";
import type { Host } from "../host/host.ts";
import { findCallPlace } from "../host/stored-calls/call-place.ts";
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

/** Finds where a call is stored, before it is made. @throws CliError `PIN_NAME`, `PIN_PLACE` */
export function findPinPlace(host: Host, name: string, { source, namespacedName, name: toolName }: ListedTool): PinPlace {
  const fault = callNameFault(name);
  if (fault !== undefined) throw new CliError("PIN_NAME", `${fault} Nothing was called.`, 2);
  const place = findCallPlace(host, { name: toolName, kind: source.kind, source: source.name });
  if ("fault" in place) throw new CliError("PIN_PLACE", `${place.fault} Nothing was called.`, 2);
  const prefix = `${place.skill.name}/`;
  return { name, folder: place.skill.folder, tool: namespacedName?.startsWith(prefix) ? namespacedName.slice(prefix.length) : toolName };
}

/** Stores the call. One with its name keeps its expectations. Returns the path of the file. @throws HostError as `saveStoredCall` */
export async function pinCall({ name, tool, folder }: PinPlace, args: Json, signal: AbortSignal): Promise<string> {
  const path = join(folder, callsFileName);
  await saveStoredCall({ path, inside: folder }, { name, tool, arguments: args, isAutomatic: false }, { signal, keepsRest: true });
  return path;
}

import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorMessage, HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import { writeFileAtomic } from "../../../io/atomic-write.ts";
import type { CopilotServerOptions } from "../copilot-options.ts";

/** What a user has chosen through a client for all later sessions. */
export interface UserSettings {
  /** The model of sessions that name none. */
  readonly model?: string;
}

/** @throws HostError `USER_SETTINGS` when the file exists and cannot be read. */
export function readUserSettings(options: CopilotServerOptions): UserSettings {
  const file = fileOf(options);
  let problem: string;
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const model = isRecord(value) ? value["model"] : null;
    if (model === undefined) return {};
    if (typeof model === "string" && model !== "") return { model };
    problem = "model must be a string";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    problem = errorMessage(error);
  }
  throw new HostError("USER_SETTINGS", `${file} cannot be read: ${problem}. Fix it, or delete it to use the defaults.`);
}

export async function writeUserSettings(options: CopilotServerOptions, settings: UserSettings): Promise<void> {
  const file = fileOf(options);
  await mkdir(dirname(file), { recursive: true });
  await writeFileAtomic(file, `${JSON.stringify(settings, null, 2)}\n`);
}

/** Beside the servers that the user configured through clients. */
function fileOf({ mcpConfigFile }: CopilotServerOptions): string {
  return join(dirname(mcpConfigFile), "user-settings.json");
}

import { spawnProcess } from "../io/process/child-process.ts";
import type { CliIo } from "./process-io.ts";

/** Shows an address in the person's browser, by what the system has for it. False: there is nothing that could. */
export async function openBrowser(address: string, { cwd, env }: Pick<CliIo, "cwd" | "env">): Promise<boolean> {
  const [command, ...args] = openers[process.platform] ?? ["xdg-open"];
  // What leads to the person's desktop is in the environment.
  const environment = Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
  const spawned = await spawnProcess({ command: command!, args: [...args, address], cwd, environment });
  if (spawned.kind !== "spawned") return false;
  const { code } = await spawned.process.ended;
  return code === 0;
}

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  // Unlike "start" it takes the address as it is: no shell reads it.
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

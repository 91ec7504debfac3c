import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { installPeer } from "../install-peer.ts";

const here = dirname(fileURLToPath(import.meta.url));

/** GitHub's server, installed from the lock file in this folder if it is missing; or the reason why it is not available. */
export function findRealServer(): { readonly path: string | undefined; readonly reason: string } {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { path: undefined, reason: "the lock file names the server for Linux on x64" };
  }
  try {
    return { path: installPeer(here, "node_modules/@github/copilot-language-server-linux-x64/copilot-language-server"), reason: "" };
  } catch (error) {
    const why = String((error as { stderr?: unknown }).stderr ?? error)
      .split("\n")
      .find((line) => /error/i.test(line));
    return { path: undefined, reason: `the server could not be installed: ${why ?? "npm failed"}` };
  }
}

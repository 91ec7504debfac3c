import { pathToFileURL } from "node:url";
import type { Logger } from "skillhost";
import type { RequestHandler } from "./rpc.ts";
import { isFields, textOf } from "./wire.ts";

/**
 * Answers for what the server asks of any editor. It waits for them, so that there is one for each that it is known to
 * send; whatever else it asks is answered with "method not found".
 */
export function editorAnswers(folder: string): Readonly<Record<string, RequestHandler>> {
  const nothing = (): null => null;
  return {
    "client/registerCapability": nothing,
    "client/unregisterCapability": nothing,
    "window/workDoneProgress/create": nothing,
    // Nobody is there to choose.
    "window/showMessageRequest": nothing,
    "window/showDocument": () => ({ success: false }),
    "workspace/applyEdit": () => ({ applied: false, failureReason: "Use the tools to edit files." }),
    "workspace/configuration": (params) => (isFields(params) && Array.isArray(params["items"]) ? params["items"].map(nothing) : []),
    "workspace/workspaceFolders": () => [workspaceFolder(folder)],
    // It then looks for itself.
    "copilot/watchedFiles": () => ({ files: [] }),
    "copilot/mcpElicitation": () => ({ action: "decline" }),
  };
}

export function workspaceFolder(folder: string): { readonly uri: string; readonly name: string } {
  return { uri: pathToFileURL(folder).href, name: "workspace" };
}

const levels = ["debug", "warning", "info", "debug", "debug"] as const;

/** What the server logs, and shows to people, goes into the log. It calls much an error that is none. */
export function logNotification(log: Logger, method: string, params: unknown): void {
  if (!isFields(params)) return;
  if (method !== "window/logMessage" && method !== "window/showMessage") return;
  const type = typeof params["type"] === "number" ? params["type"] : 4;
  log[levels[type] ?? "debug"](`The language server says: ${textOf(params["message"]).slice(0, 2000)}`);
}

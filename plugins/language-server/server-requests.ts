import { pathToFileURL } from "node:url";
import type { Logger } from "skillhost";
import type { RequestHandler } from "./rpc.ts";
import { isFields, textOf } from "./wire.ts";

/**
 * Answers to the requests that the server sends to any editor, and waits for. All other requests are answered with
 * "method not found".
 */
export function editorAnswers(folder: string): Readonly<Record<string, RequestHandler>> {
  const nothing = (): null => null;
  return {
    "client/registerCapability": nothing,
    "client/unregisterCapability": nothing,
    "window/workDoneProgress/create": nothing,
    // There is no user to choose.
    "window/showMessageRequest": nothing,
    "window/showDocument": () => ({ success: false }),
    "workspace/applyEdit": () => ({ applied: false, failureReason: "Use the tools to edit files." }),
    "workspace/configuration": (params) => (isFields(params) && Array.isArray(params["items"]) ? params["items"].map(nothing) : []),
    "workspace/workspaceFolders": () => [workspaceFolder(folder)],
    // The server then reads the folder itself.
    "copilot/watchedFiles": () => ({ files: [] }),
    "copilot/mcpElicitation": () => ({ action: "decline" }),
  };
}

export function workspaceFolder(folder: string): { readonly uri: string; readonly name: string } {
  return { uri: pathToFileURL(folder).href, name: "workspace" };
}

const levels = ["debug", "warning", "info", "debug", "debug"] as const;

/** Logs the messages of the server. Many that it sends as errors are not, so they are logged at the debug level. */
export function logNotification(log: Logger, method: string, params: unknown): void {
  if (!isFields(params)) return;
  if (method !== "window/logMessage" && method !== "window/showMessage") return;
  const type = typeof params["type"] === "number" ? params["type"] : 4;
  log[levels[type] ?? "debug"](`Message of the language server: ${textOf(params["message"]).slice(0, 2000)}`);
}

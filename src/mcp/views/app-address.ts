import { isRecord } from "../../base/json.ts";

/** The media type of a page that an MCP server has for results of its tools (MCP Apps, SEP-1865). */
export const appMimeType = "text/html;profile=mcp-app";

/** The address of the page that a tool's `_meta` names. Undefined: there is none. */
export function appAddressIn(meta: unknown): string | undefined {
  if (!isRecord(meta)) return undefined;
  const { ui } = meta;
  // The second form is that of drafts.
  const uri = isRecord(ui) && ui["resourceUri"] !== undefined ? ui["resourceUri"] : meta["ui/resourceUri"];
  return typeof uri === "string" && uri.startsWith("ui://") ? uri : undefined;
}

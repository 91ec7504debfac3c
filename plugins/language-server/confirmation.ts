import type { CallOutcome, Tool } from "skillhost";
import type { Fields } from "./wire.ts";

/** Whether the server asks about a tool that it works out itself, and then has ours write the outcome. */
export function isWrapperOf(tools: ReadonlyMap<string, Tool>, name: string): boolean {
  const own = name.replace("copilot.", "");
  return wrapped.has(own) && tools.has(own);
}

const wrapped: ReadonlySet<string> = new Set(["create_file", "insert_edit_into_file", "replace_string_in_file", "apply_patch"]);

/** Whether somebody or some rule kept a call from running, and not what is wrong with it. */
export function isDenied({ code, result: { resultType } }: CallOutcome): boolean {
  return resultType === "denied" || resultType === "rejected" || /^(permission|denied)_/.test(code);
}

// What the server adds to the arguments when it asks.
const extras = ["toolType", "filePath", "commandLineType", "mcpServerName", "mcpToolName", "mcpType"];

/** The arguments alone. What the tool has for its own stays, whatever it is called. */
export function withoutExtras(input: Fields, parameters: Fields | undefined): Fields {
  const properties = parameters?.["properties"];
  const isOwn = (key: string): boolean => typeof properties === "object" && properties !== null && Object.hasOwn(properties, key);
  return Object.fromEntries(Object.entries(input).filter(([key]) => !extras.includes(key) || isOwn(key)));
}

import { type ApprovalText, approvalText } from "../../base/approval-text.ts";
import { exactJson, exactText } from "../../base/hidden-characters.ts";
import type { PermissionAsk } from "../../tools/tool.ts";

// What a person must see of a request: what would run, where, and what would change.
const shownFields = ["fullCommandText", "path", "fileName", "method", "url", "environment", "diff", "hookMessage"];

/**
 * The question whether a call may run, for people, by every way of asking them. `source` names where the tool comes from,
 * where that is known. `isCut: false` shows all of it, however long.
 */
export function permissionText(data: PermissionAsk, source?: string, options: { readonly isCut?: boolean } = {}): ApprovalText {
  const name = exactJson(data.toolName);
  const parts: [label: string, ApprovalText][] = [["Arguments", argumentsText(data.toolArgs, options)]];
  for (const field of shownFields) {
    const value = data[field];
    if (typeof value === "string" && value !== "") parts.push([field, approvalText(value, options)]);
  }
  const from = source === undefined ? "" : ` of ${exactText(source).replace(/\s+/g, " ")}`;
  const question = `May the tool ${name}${from} be called?`;
  return {
    text: [question, ...parts.map(([label, { text }]) => `${label}:\n${text}`)].join("\n"),
    isWhole: parts.every(([, { isWhole }]) => isWhole),
  };
}

function argumentsText(args: unknown, options: { readonly isCut?: boolean }): ApprovalText {
  try {
    return approvalText(JSON.stringify(args, null, 2) ?? "none", options);
  } catch {
    // A hook gave arguments that JSON cannot hold; the person at least sees that.
    return { text: "| (arguments that cannot be shown)", isWhole: false };
  }
}

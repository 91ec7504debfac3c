import { onTestFinished } from "vitest";
import { describeCommand } from "../../../plugins/workspace-tools/operations/describe-command.ts";
import { compilePermissionRules, type PermissionRules } from "../../../src/session/permissions/permission-rules.ts";
import type { Tool } from "../../../src/tools/tool.ts";
import { toolOf } from "../session-kit.ts";
import { makeSecretFolder, marker, type SecretFolder } from "./secret-folder.ts";

export const bashTool: Tool = toolOf("builtin", "workspace-tools", { name: "bash", handler: () => "", permission: () => null });

export function verdictOf(rules: PermissionRules, line: string, more: object = {}): string | undefined {
  return rules.judge({ tool: bashTool, request: { kind: "shell", ...describeCommand(line), ...more }, args: { command: line } })?.kind;
}

/** The folder, with its home folder as that of this process. */
export function openSecrets(): SecretFolder {
  const folder = makeSecretFolder();
  const before = process.env["HOME"];
  process.env["HOME"] = folder.home;
  onTestFinished(() => {
    process.env["HOME"] = before;
    folder[Symbol.dispose]();
  });
  return folder;
}

export interface LinesRun {
  /** Lines that printed a secret and that rules would not have denied. */
  readonly leaks: readonly string[];
  /** The same for ask rules. */
  readonly unasked: readonly string[];
  /** Number of lines that printed a secret. */
  readonly shown: number;
}

/** Runs each line in bash, whatever its verdict. */
export function runLines(lines: readonly string[], rules: readonly string[]): LinesRun {
  const folder = openSecrets();
  const denying = compilePermissionRules({ allow: ["shell"], deny: rules }, folder.project);
  const asking = compilePermissionRules({ allow: ["shell"], ask: rules }, folder.project);
  const [leaks, unasked]: [string[], string[]] = [[], []];
  let shown = 0;
  for (const line of lines) {
    folder.reset();
    const [denied, asked] = [verdictOf(denying, line) === "deny", verdictOf(asking, line) === "ask"];
    if (!folder.run(line).includes(marker)) continue;
    shown++;
    if (!denied) leaks.push(line);
    if (!asked) unasked.push(line);
  }
  return { leaks, unasked, shown };
}

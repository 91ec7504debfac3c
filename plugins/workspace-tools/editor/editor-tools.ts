import type { ToolContext, ToolLike } from "skillhost";
import type { CommandConfinement } from "../operations/command-confinement.ts";
import type { WebMachine } from "../operations/fetch-page.ts";
import type { Machine } from "../operations/machine.ts";
import type { Roots } from "../operations/places.ts";
import type { Shells } from "../operations/shells.ts";
import type { FileWriter } from "../operations/write-files.ts";
import { toToolLike } from "../workspace-tool.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { createDirectoryTool } from "./create-directory.ts";
import { createFileTool } from "./create-file.ts";
import { toWorkspaceTool } from "./edit-tool.ts";
import { createFetchTool } from "./fetch-web-page.ts";
import { fileSearchTool } from "./file-search.ts";
import { findTestFilesTool } from "./find-test-files.ts";
import { createErrorsTool } from "./get-errors.ts";
import { grepSearchTool } from "./grep-search.ts";
import { insertEditTool } from "./insert-edit.ts";
import { listDirTool } from "./list-dir.ts";
import { readFileTool } from "./read-file.ts";
import { multiReplaceTool, replaceStringTool } from "./replace-string.ts";
import { createTerminalTool } from "./run-in-terminal.ts";
import { createRunTestsTool } from "./run-tests.ts";

/** Dependencies of the tools. */
export interface EditorToolsParts {
  readonly machine: WebMachine & Pick<Machine, "startProcess">;
  readonly writer: FileWriter;
  readonly confinement: CommandConfinement;
  /** Undefined: this machine has no bash, so command lines cannot be run. */
  readonly shells: Shells | undefined;
  readonly bash: string | undefined;
  /** Whether the tools may run programs: those of the project and those that check files. */
  readonly runsPrograms: boolean;
  /** The folders that a call may access. */
  rootsOf(context: ToolContext): Roots;
}

/** The tools with the names that editors use, which language servers and their models know. */
export function createEditorTools({
  machine,
  writer,
  confinement,
  shells,
  bash,
  runsPrograms,
  rootsOf,
}: EditorToolsParts): readonly ToolLike[] {
  return [
    toToolLike(toWorkspaceTool(insertEditTool, writer), rootsOf),
    toToolLike(toWorkspaceTool(replaceStringTool, writer), rootsOf),
    toToolLike(toWorkspaceTool(multiReplaceTool, writer), rootsOf),
    toToolLike(toWorkspaceTool(createFileTool, writer), rootsOf),
    toToolLike(createDirectoryTool, rootsOf),
    toToolLike(toWorkspaceTool(applyPatchTool, writer), rootsOf),
    toToolLike(readFileTool, rootsOf),
    toToolLike(listDirTool, rootsOf),
    toToolLike(fileSearchTool, rootsOf),
    toToolLike(grepSearchTool, rootsOf),
    toToolLike(findTestFilesTool, rootsOf),
    ...(shells === undefined ? [] : [toToolLike(createTerminalTool(shells, confinement), rootsOf)]),
    ...(runsPrograms ? [toToolLike(createRunTestsTool({ machine, confinement, bash }), rootsOf)] : []),
    toToolLike(createFetchTool(machine), rootsOf),
    toToolLike(createErrorsTool(runsPrograms ? { machine, confinement } : undefined), rootsOf),
  ];
}

import type { ToolContext, ToolLike } from "skillhost";
import type { CommandConfinement } from "../operations/command-confinement.ts";
import type { WebMachine } from "../operations/fetch-page.ts";
import type { Roots } from "../operations/places.ts";
import type { Shells } from "../operations/shells.ts";
import type { FileWriter } from "../operations/write-files.ts";
import { toToolLike } from "../workspace-tool.ts";
import { createBashTool } from "./bash.ts";
import { createCreateTool } from "./create.ts";
import { createEditTool } from "./edit.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { createListBashTool, createReadBashTool, createStopBashTool, createWriteBashTool } from "./shell-tools.ts";
import { viewTool } from "./view.ts";
import { createWebFetchTool } from "./web-fetch.ts";

/** Dependencies of the tools. */
export interface CopilotToolsParts {
  readonly machine: WebMachine;
  readonly writer: FileWriter;
  readonly confinement: CommandConfinement;
  /** Undefined: this machine has no bash, so its tools are not offered. */
  readonly shells: Shells | undefined;
  /** The folders that a call may access. */
  rootsOf(context: ToolContext): Roots;
}

/** The tools with the names and texts of the Copilot runtime. */
export function createCopilotTools({ machine, writer, confinement, shells, rootsOf }: CopilotToolsParts): readonly ToolLike[] {
  const ofFiles = [
    toToolLike(viewTool, rootsOf),
    toToolLike(createCreateTool(writer), rootsOf),
    toToolLike(createEditTool(writer), rootsOf),
    toToolLike(grepTool, rootsOf),
    toToolLike(globTool, rootsOf),
    toToolLike(createWebFetchTool(machine), rootsOf),
  ];
  if (shells === undefined) return ofFiles;
  const ofShells = [
    toToolLike(createBashTool(shells, confinement), rootsOf),
    toToolLike(createReadBashTool(shells), rootsOf),
    toToolLike(createWriteBashTool(shells, confinement), rootsOf),
    toToolLike(createStopBashTool(shells), rootsOf),
    toToolLike(createListBashTool(shells), rootsOf),
  ];
  return [...ofShells, ...ofFiles];
}

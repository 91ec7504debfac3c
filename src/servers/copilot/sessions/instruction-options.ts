import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { CustomInstructionOptions } from "../../../session/instructions/custom-instructions.ts";
import type { Params } from "../framing/params.ts";
import type { Environment } from "./model-endpoint.ts";

/**
 * What a client says of custom instructions. Undefined: nothing that would change what there was `before`. A session that
 * begins has none before, and reads the files of its project unless its client says otherwise.
 */
export function toCustomInstructions(
  params: Params,
  environment: Environment,
  before: CustomInstructionOptions | undefined,
): CustomInstructionOptions | undefined {
  const skips = params.optionalFlag("skipCustomInstructions");
  const directories = params.optionalTexts("instructionDirectories");
  const organization = params.optionalText("organizationCustomInstructions");
  if (before !== undefined && skips === undefined && directories === undefined && organization === undefined) return undefined;
  const userDirectory = userDirectoryOf(environment);
  return {
    userDirectory,
    ...before,
    ...(skips === undefined ? { files: before?.files ?? true } : { files: !skips }),
    ...(directories !== undefined && { directories }),
    ...(organization !== undefined && { organization }),
  };
}

/** Where the user's own instructions lie, for agents of this kind. */
export function userDirectoryOf(environment: Environment): string {
  const home = environment["COPILOT_HOME"];
  return home ? resolve(home) : join(environment["HOME"] || homedir(), ".copilot");
}

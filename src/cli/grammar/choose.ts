import type { RunCommand } from "../command-context.ts";
import type { CodeUse } from "../project-consent.ts";

/**
 * Records the chosen command. A command that runs project code declares it in `code`; for others, no code of an untrusted project runs.
 */
export type Choose = (name: string, run: RunCommand, code?: CodeUse) => void;

import { installFrozen } from "../../packages/frozen-install.ts";
import type { CommandContext } from "../command-context.ts";
import { withPackages } from "../package-context.ts";
import { reportDrift, totals } from "./lock.ts";

/** Installs what the locks say. With any difference nothing is installed, and the exit code is 1. */
export async function ci(context: CommandContext): Promise<number> {
  const outcome = await withPackages(context, {}, installFrozen);
  const { installed } = outcome;
  const what = installed.length === 0 ? "Nothing was missing" : `Installed ${installed.length} of package-lock.json`;
  return reportDrift(context, outcome, `${what}. ${totals(outcome)} verified: every byte is as the lock has it.`, { installed });
}

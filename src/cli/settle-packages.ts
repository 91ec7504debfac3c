import { toError } from "../base/errors.ts";
import type { HostOptions } from "../host/host-options.ts";
import { isUnsettled } from "../packages/journal-file.ts";
import type { CommandContext } from "./command-context.ts";
import { visibleLine } from "./visible-text.ts";

type Told = Pick<CommandContext, "io" | "out" | "log">;

/** Has a host that is about to start find the packages of its projects as a command left them that was not killed. */
export async function settlePackages(options: HostOptions, told: Told): Promise<void> {
  if (options.packageSkills === undefined || options.packageSkills === false) return;
  const { resolveHostOptions } = await import("../host/host-options.ts");
  const { projectOfRoot } = await import("../skills/store/package-skills.ts");
  for (const root of resolveHostOptions(options).packageRoots) {
    const folder = projectOfRoot(root);
    if (folder !== undefined) await settleFolder(folder, told);
  }
}

/** The same for one project. That it cannot be done is said, and keeps nobody from using what is there. */
export async function settleFolder(folder: string, { io, out, log }: Told): Promise<void> {
  if (!isUnsettled(folder)) return;
  const { settleProject } = await import("../packages/settle-project.ts");
  try {
    const settled = await settleProject(folder, io.signal);
    if (settled.kind === "settled") return;
    say(settled.kind === "busy" ? `Packages in ${folder} are being changed right now.` : recoveredText(settled.paths));
  } catch (error) {
    if (io.signal.aborted) throw error;
    say(`What an interrupted command left in ${folder} could not be taken back: ${toError(error).message}`);
  }

  function say(text: string): void {
    log.warning(text);
    out.note(text);
  }
}

/** Says that what an earlier command had begun is undone. */
export function recoveredText(paths: readonly string[]): string {
  return `An earlier command was interrupted; what it had begun was taken back: ${paths.map(visibleLine).join(", ")}.`;
}

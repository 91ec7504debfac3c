import type { CommandContext } from "../command-context.ts";
import { completionScript, type Shell } from "../completion-scripts.ts";

/** Prints the completion script of a shell. */
export async function completion({ out }: CommandContext, shell: Shell): Promise<number> {
  const script = completionScript(shell);
  if (out.isJson) out.envelope({ ok: true, data: { shell, script }, diagnostics: [] });
  else out.line(script.trimEnd());
  return 0;
}

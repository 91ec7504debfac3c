import type { CommandContext } from "./command-context.ts";

export interface Confirmation {
  /** What is asked once everything was shown: `Install it?` */
  readonly question: string;
  /** What to do where nobody can be asked: `Review it, then install it with --yes.` */
  readonly otherwise: string;
  /** All of what was shown in part. Undefined: it was shown whole. */
  readonly whole?: (() => readonly string[]) | undefined;
}

/** Whether the person on the terminal agrees. What was not shown whole needs more than a "y". */
export async function confirm({ io, out }: CommandContext, { question, otherwise, whole }: Confirmation): Promise<boolean> {
  if (io.ask === undefined || !io.stdin.isTTY || !io.stderr.isTTY || out.isJson) {
    out.note(`Not a terminal, so nothing was confirmed. ${otherwise}`);
    return false;
  }
  const ask = async (text: string): Promise<string> => (await io.ask!(text, io.signal)).trim().toLowerCase();
  const isYes = async (): Promise<boolean> => /^y(es)?$/.test(await ask(`${question} [y/N] `));
  if (whole === undefined) return isYes();
  const answer = await ask(`${question} Not all of it is shown. Type "show" to see it, or "agree unseen"; anything else declines: `);
  if (answer === "agree unseen") return true;
  if (answer !== "show") return false;
  for (const line of whole()) out.line(line);
  return isYes();
}

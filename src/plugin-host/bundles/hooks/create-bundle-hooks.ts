import { errorMessage } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import type { HookCommand } from "../../../formats/plugins/hook-config.ts";
import { hookOptions, type SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import { type HookReply, hookAnswer } from "./hook-answer.ts";
import { createMatcher } from "./match-hook.ts";
import { type HookPlace, runHook } from "./run-hook.ts";

type Inputs = Readonly<Record<string, unknown>>;
type Observer = (input: Inputs) => unknown;

/**
 * The hooks of a bundle as sessions take them. One that fails throws, so that a gate denies what it guards and an observer
 * is passed over; of what it wrote to stderr, the log tells.
 */
export function createBundleHooks(commands: readonly HookCommand[], place: HookPlace & { readonly log: Logger }): SessionHooks {
  const hooks: Partial<Record<keyof SessionHooks, readonly Observer[]>> = {};
  for (const command of commands) {
    const fits = createMatcher(command);
    if (fits === undefined) continue;
    const option = hookOptions[command.moment];
    hooks[option] = [...(hooks[option] ?? []), (input) => (fits(input) ? run(command, input, place) : undefined)];
  }
  return hooks as unknown as SessionHooks;
}

async function run(command: HookCommand, input: Inputs, place: HookPlace & { readonly log: Logger }): Promise<unknown> {
  if (!command.isAsync) return conclude(command, input, place, await runHook(command, input, place));
  // It goes on by itself; only the log hears how it ended.
  runHook(command, input, place).then(
    (reply) => void tell(command, place, reply),
    (error) => place.log.warning(errorMessage(error), { hook: command.event }),
  );
  return undefined;
}

function conclude(command: HookCommand, input: Inputs, place: HookPlace & { readonly log: Logger }, reply: HookReply): object | undefined {
  tell(command, place, reply);
  return hookAnswer(command, input, reply);
}

function tell({ event, program }: HookCommand, { log, folder }: HookPlace & { readonly log: Logger }, { code, stderr }: HookReply): void {
  if (code === 0 || code === 2) return;
  const line = program.kind === "shell" ? (program.bash ?? program.powershell) : program.command;
  log.warning(`A ${event} hook of the plugin in ${folder} ended with exit code ${code}.`, {
    command: line?.slice(0, 200),
    stderr: stderr.slice(-2_000),
  });
}

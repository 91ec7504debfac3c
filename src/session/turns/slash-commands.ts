import { randomUUID } from "node:crypto";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { waitFor } from "../../base/wait.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import { emitSkillInvoked, type SkillSource } from "../agents/agent-prompt.ts";
import { skillContext } from "../prompt/model-text.ts";
import type { SessionContext } from "../session-context.ts";

/** A command that a person gives, such as `/deploy`. */
export interface SessionCommand {
  /** Without a slash. */
  readonly name: string;
  readonly description?: string | undefined;
  /**
   * Does it. A text that it gives takes the place of the message that called it up, so that the model answers it; with
   * anything else the model is not asked.
   */
  handler(invocation: {
    readonly sessionId: string;
    /** What stands after the name. */
    readonly arguments: string;
    /** Fires when the command is not awaited any more. */
    readonly signal: AbortSignal;
  }): unknown;
}

interface CalledCommand {
  readonly command: SessionCommand;
  readonly argumentsText: string;
}

const invocation = /^\/(\S+)(?:\s+([\s\S]*))?$/;

/** The command that a prompt such as `/deploy staging` calls up; undefined: it calls up none. */
export function commandIn(prompt: string, commands: ReadonlyMap<string, SessionCommand>): CalledCommand | undefined {
  const [, name, argumentsText = ""] = invocation.exec(prompt.trim()) ?? [];
  const command = name === undefined ? undefined : commands.get(name);
  return command && { command, argumentsText: argumentsText.trim() };
}

/** @throws HostError `COMMAND_UNKNOWN`. */
export function findCommand(name: string, commands: ReadonlyMap<string, SessionCommand>): SessionCommand {
  const command = commands.get(name);
  if (command !== undefined) return command;
  const known = [...commands.keys()].join(", ");
  const advice = known === "" ? "No plugin adds commands." : `Available commands: ${known}.`;
  throw new HostError("COMMAND_UNKNOWN", `Command ${JSON.stringify(name)} does not exist. ${advice}`);
}

/** Runs a command, emits its events and returns its result. Rejects as it does, and when the signal fires. */
export async function runCommand(
  { command, argumentsText }: CalledCommand,
  context: SessionContext,
  signal: AbortSignal,
): Promise<unknown> {
  const { events, log, sessionId } = context;
  const requestId = randomUUID();
  const { name: commandName } = command;
  const text = argumentsText === "" ? `/${commandName}` : `/${commandName} ${argumentsText}`;
  events.append("command.execute", { requestId, commandName, command: text, args: argumentsText });
  try {
    const handled = new Promise((done) => done(command.handler({ sessionId, arguments: argumentsText, signal })));
    return await waitFor(handled, { signal });
  } catch (error) {
    if (!signal.aborted) log.error(`Command "/${commandName}" failed.`, { sessionId, error: toError(error) });
    throw signal.aborted
      ? error
      : new HostError("COMMAND_FAILED", `Command "/${commandName}" failed: ${errorMessage(error)}`, { cause: error });
  } finally {
    events.append("command.completed", { requestId });
  }
}

/**
 * What a model gets instead of a prompt such as `/release-notes since v2`, when a person's skill has that name: its
 * instructions with what follows the name filled in, as Agent Skills clients do. Undefined: the prompt calls up no skill
 * and means itself.
 */
export async function userSkillContext(prompt: string, host: SkillSource): Promise<string | undefined> {
  const [, name, argumentsText = ""] = invocation.exec(prompt.trim()) ?? [];
  const skill = name === undefined ? undefined : host.skills().findLast((entry) => entry.name === name && isInvocable(entry));
  if (skill === undefined) return undefined;
  try {
    const content = skillContext({ name: skill.name, folder: skill.folder, body: await skill.instructions(argumentsText.trim()) });
    emitSkillInvoked(skill, content, { events: host.events, trigger: "user-invoked" });
    return content;
  } catch (error) {
    host.log.error(`The instructions of skill "${skill.name}" could not be read.`, { error: errorMessage(error) });
    return undefined;
  }
}

function isInvocable({ userInvocable, hasInstructions }: SkillEntry): boolean {
  return userInvocable !== false && hasInstructions !== false;
}

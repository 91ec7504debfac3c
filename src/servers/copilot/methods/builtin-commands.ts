import type { CopilotSession } from "../sessions/copilot-session.ts";
import { compactSession } from "./history.ts";
import type { Call } from "./method.ts";
import { changeOfProvider } from "./models.ts";

/** A command of the runtime itself. `run` returns a `SlashCommandInvocationResult` of the Copilot SDK. */
interface BuiltinCommand {
  readonly description: string;
  readonly hint?: string;
  run(call: Call, session: CopilotSession, input: string, signal?: AbortSignal): object | Promise<object>;
}

/** The commands that the runtime brings. One of a client, plugin or skill with the same name takes precedence. */
const builtins: ReadonlyMap<string, BuiltinCommand> = new Map(
  Object.entries({
    help: {
      description: "List the commands of this session.",
      run: (_call, session) => ({ kind: "text", text: listCommands(session).map(lineOf).join("\n") }),
    },
    model: {
      description: "Show or change the model.",
      hint: "name of the model",
      async run({ server }, session, input) {
        const modelId = input.trim();
        if (modelId !== "") {
          session.assertAllowed(modelId);
          await session.session.update({ model: modelId, ...changeOfProvider(server, session, modelId) });
          return { kind: "completed", message: `The model is ${modelId} from now on.` };
        }
        const { model } = session.session.config.view;
        const now = model === undefined ? "No model is set." : `The model is ${model}.`;
        return { kind: "text", text: `${now} Select another with /model <name>.` };
      },
    },
    compact: {
      description: "Continue with a summary of the conversation so far.",
      hint: "what the summary must keep",
      async run(call, { session }, input, signal = call.signal()) {
        const end = await compactSession(call, session, input.trim() === "" ? undefined : input, signal);
        if (end.kind === "cancelled") return { kind: "completed", message: "The compaction was cancelled." };
        return { kind: "completed", message: `A summary took the place of ${end.messagesRemoved} messages.` };
      },
    },
  } satisfies Readonly<Record<string, BuiltinCommand>>),
);

export interface ListedCommand {
  readonly name: string;
  readonly description: string;
  readonly kind: "builtin" | "skill" | "client";
  readonly allowDuringAgentExecution: boolean;
  readonly input?: { readonly hint: string };
}

/** All commands of a session: those of its clients, of plugins and of the runtime, and its skills. A name is listed once. */
export function listCommands({ commands, session }: CopilotSession): readonly ListedCommand[] {
  const clients = [...commands.all.values()].map(
    ({ name, description }) => ({ name, description, kind: "client", allowDuringAgentExecution: true }) as const,
  );
  const own = session.commands.map(({ name, description = "" }) => entry(name, description, "builtin"));
  const skills = session
    .listSkills()
    .filter(({ userInvocable }) => userInvocable !== false)
    .map(({ name, description }) => entry(name, description, "skill"));
  const taken = new Set([...clients, ...own, ...skills].map(({ name }) => name));
  const ofRuntime = [...builtins]
    .filter(([name]) => !taken.has(name))
    .map(([name, { description, hint }]) => ({ ...entry(name, description, "builtin"), ...(hint !== undefined && { input: { hint } }) }));
  return [...clients, ...own, ...ofRuntime, ...skills];
}

/** The runtime's own command of a name, unless something else in the session has that name. */
export function findBuiltin(session: CopilotSession, name: string): BuiltinCommand | undefined {
  const isTaken =
    session.commands.all.has(name) || session.session.commands.some((command) => command.name === name) || isSkill(session, name);
  return isTaken ? undefined : builtins.get(name);
}

/** Whether users can call up a skill of this name. */
export function isSkill({ session }: CopilotSession, name: string): boolean {
  return session.listSkills().some((skill) => skill.name === name && skill.userInvocable !== false);
}

function entry(name: string, description: string, kind: "builtin" | "skill"): ListedCommand {
  return { name, description, kind, allowDuringAgentExecution: false };
}

function lineOf({ name, description, input }: ListedCommand): string {
  const hint = input === undefined ? "" : ` <${input.hint}>`;
  return description === "" ? `/${name}${hint}` : `/${name}${hint}: ${description}`;
}

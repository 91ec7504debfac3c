import type { Hook, HookKind, ResolvedHooks } from "../session/hooks/hook-kinds.ts";
import type { CallsInFlight } from "../skills/load/calls-in-flight.ts";
import { wrapExecute } from "../tools/create-tool.ts";
import type { Tool } from "../tools/tool.ts";
import type { Contributions } from "./contributions.ts";
import type { PluginCommand } from "./plugin-api.ts";

/** The same contributions, whose calls are counted: what is replaced is not taken from under a call that runs. */
export function countContributions(contributions: Contributions, calls: CallsInFlight): Contributions {
  const { tools, hooks, commands } = contributions;
  return {
    ...contributions,
    tools: tools.map((tool) => countCallsOf(tool, calls)),
    hooks: hooks.map((kinds) => countHooks(kinds, calls)),
    commands: new Map(Array.from(commands, ([name, command]) => [name, countCommand(command, calls)])),
  };
}

export function countCallsOf(tool: Tool, calls: CallsInFlight): Tool {
  return wrapExecute(tool, (execute) => calls.track(execute), calls.hold);
}

function countHooks(kinds: ResolvedHooks, calls: CallsInFlight): ResolvedHooks {
  const counted = Object.entries(kinds).map(([kind, hooks]) => [
    kind,
    (hooks as readonly Hook<HookKind>[]).map((hook) => calls.track(hook)),
  ]);
  return Object.freeze(Object.fromEntries(counted)) as ResolvedHooks;
}

function countCommand(command: PluginCommand, calls: CallsInFlight): PluginCommand {
  const { name, description } = command;
  return { name, description, handler: calls.track((...args: Parameters<PluginCommand["handler"]>) => command.handler(...args)) };
}

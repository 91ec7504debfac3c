import type { PluginInfo } from "../plugin-host/plugin-info.ts";
import { counted } from "./describe-skill.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./visible-text.ts";

/** A plugin with what it brings and what is wrong with it. */
export function printPlugin(plugin: PluginInfo, out: Output): void {
  out.line(`  ${pluginHeading(plugin, out)}`);
  const parts = pluginParts(plugin);
  if (parts !== undefined) out.line(`    ${out.style.dim("brings")} ${parts}`);
  for (const diagnostic of plugin.diagnostics) out.line(`    ${out.diagnostic(diagnostic)}`);
}

/** `name 1.2.0  active  claude  plugins/name` */
function pluginHeading({ name, version, state, stale, bundle, specifier }: PluginInfo, { style, path }: Output): string {
  const color = { active: style.green, failed: style.red, disposed: style.dim }[state];
  const called = version === undefined ? style.bold(visibleLine(name)) : `${style.bold(visibleLine(name))} ${visibleLine(version)}`;
  const fate = stale ? `${color(state)} ${style.red("(stale: the last good generation serves)")}` : color(state);
  const from = bundle === undefined ? visibleLine(specifier ?? "") : path(bundle.folder);
  return [called, fate, bundle?.dialect ?? "", style.dim(from)].filter((part) => part !== "").join("  ");
}

/** What a plugin brings, in numbers: `2 skills, 1 agent`. Undefined: nothing. */
function pluginParts({ bundle, tools, agents, commands, hooks, mcpServers }: PluginInfo): string | undefined {
  const parts = [
    [bundle?.skills.length ?? 0, "skill"],
    [tools.length, "tool"],
    [agents.length, "agent"],
    [commands.length, "command"],
    [hooks.length, "kind of hooks"],
    [mcpServers.length, "MCP server"],
  ] as const;
  const some = parts.filter(([count]) => count > 0);
  return some.length === 0
    ? undefined
    : some.map(([count, noun]) => (noun === "kind of hooks" ? kinds(count) : counted(count, noun))).join(", ");
}

function kinds(count: number): string {
  return `${count} ${count === 1 ? "kind" : "kinds"} of hooks`;
}

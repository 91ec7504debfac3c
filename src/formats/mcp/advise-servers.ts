import type { Diagnostic } from "../../base/diagnostic.ts";
import type { McpServerSpec } from "./mcp-server-spec.ts";

/**
 * Says what in the servers of a session is probably not meant: its options are literal, so a `${NAME}` is sent as it
 * stands, and so is the name of a variable; an empty list of tools leaves a server unstarted. No value is shown but the
 * name of a variable of the host.
 */
export function adviseServers(
  specs: readonly McpServerSpec[],
  hostEnvironment: Readonly<Record<string, string | undefined>>,
): readonly Diagnostic[] {
  return specs.filter(({ isDisabled }) => !isDisabled).flatMap((spec) => adviseServer(spec, hostEnvironment));
}

function adviseServer(spec: McpServerSpec, hostEnvironment: Readonly<Record<string, string | undefined>>): readonly Diagnostic[] {
  const found: Diagnostic[] = [];
  const warn = (code: string, message: string): void => {
    found.push({ severity: "warning", code, message: `MCP server ${JSON.stringify(spec.name)}: ${message}`, source: spec.name });
  };
  if (spec.tools?.length === 0)
    warn("ADVICE_MCP_TOOLS_NONE", '"tools" is an empty list, so it offers none and is not started. Write ["*"] for all, or name some.');
  for (const [place, value] of literalTexts(spec)) {
    if (/\$\{[^}]*\}/.test(value) || /(?:^| )\$[A-Z_][A-Z0-9_]*$/.test(value))
      warn(
        "ADVICE_MCP_LITERAL_VARIABLE",
        `${place} has a variable in it, which is sent as it stands: nothing is filled in here. Give the value.`,
      );
    else if (/^[A-Za-z_]\w*$/.test(value) && place.startsWith('"env"') && Object.hasOwn(hostEnvironment, value))
      warn(
        "ADVICE_MCP_ENV_NAME",
        `${place} is the name of a variable, ${value}, not its value. Give the value, such as process.env.${value}.`,
      );
  }
  return found;
}

function literalTexts(spec: McpServerSpec): readonly (readonly [place: string, value: string])[] {
  const of = (key: string, map: Readonly<Record<string, string>>): (readonly [string, string])[] =>
    Object.entries(map).map(([name, value]) => [`"${key}" → ${JSON.stringify(name)}`, value]);
  if (spec.type !== "stdio") return [['"url"', spec.url], ...of("headers", spec.headers)];
  const args = spec.args.map((value, index) => [`"args" → element ${index + 1}`, value] as const);
  const cwd = spec.cwd === undefined ? [] : [['"cwd"', spec.cwd] as const];
  return [['"command"', spec.command], ...args, ...of("env", spec.env), ...cwd];
}

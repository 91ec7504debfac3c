import { definePlugin, type Plugin } from "skillhost";
import { createPythonRunner } from "./python-runner.ts";

export { inspectPython } from "./inspect-python.ts";

interface Config {
  readonly python?: string;
  readonly environment: readonly string[];
  readonly killAfter: number;
}

/** Lets skills define tools in Python. */
export const pythonTools: Plugin = definePlugin<Config>({
  name: "python-tools",
  version: "1.0.0",
  configSchema: {
    type: "object",
    properties: {
      python: { type: "string", minLength: 1, description: "The interpreter. Default: the skill's .venv, else python3 in PATH." },
      environment: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: [],
        description: "Names of the host's environment variables that Python receives in addition to the default ones.",
      },
      killAfter: {
        type: "integer",
        minimum: 0,
        default: 1000,
        description: "Milliseconds until the process of a cancelled call is ended.",
      },
    },
    additionalProperties: false,
  },
  activate(api) {
    const { python, environment, killAfter } = api.config;
    const options = { startProcess: api.startProcess, log: api.log, python, killAfter, environment: namedVariables(environment) };
    api.addToolRunner(createPythonRunner(api, { ...options, interpreters: new Map() }));
  },
});

function namedVariables(names: readonly string[]): Readonly<Record<string, string>> {
  const found = names.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(found.filter((entry): entry is readonly [string, string] => entry[1] !== undefined));
}

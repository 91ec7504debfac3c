import { isAbsolute } from "node:path";
import { badParams, notSupported } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import { describePlugin } from "./library.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Plugins. They are chosen when skillhost is started; what clients can do is look at them. */
export const plugins: MethodFamily = {
  async "plugins.list"(call) {
    const { plugins: installed } = await call.server.pluginLibrary();
    return { plugins: [...(await list(call)), ...installed.map(describePlugin)] };
  },
  async "session.plugins.list"(call) {
    const session = findSession(call.server, call.params);
    return { plugins: [...(await list(call)), ...session.plugins.listed] };
  },
  "plugins.builtin.set"({ server, params }) {
    const paths = params.texts("paths");
    const relative = paths.find((path) => !isAbsolute(path));
    if (relative !== undefined) throw badParams(params.method, `${JSON.stringify(relative)} is not an absolute path.`);
    server.builtinPlugins = paths;
  },
  "sessions.setAdditionalPlugins"({ params }) {
    if (params.records("plugins").length === 0) return {};
    throw notSupported(`${params.method} is not supported by skillhost: list plugin folders in pluginDirectories of the session.`);
  },
  "secrets.addFilterValues"({ server, params }) {
    for (const value of params.texts("values")) if (value.length >= 4) server.secrets.add(value);
    return { ok: true };
  },
};

/** Those of the host. */
async function list({ server }: Call): Promise<readonly object[]> {
  const host = await server.host();
  return host.plugins.map(({ name, version, state }) => ({
    name,
    marketplace: "",
    ...(version !== undefined && { version }),
    enabled: state === "active",
  }));
}

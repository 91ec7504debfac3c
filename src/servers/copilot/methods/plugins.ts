import { isAbsolute } from "node:path";
import { badParams, notSupported } from "../rpc-error.ts";
import { findSession } from "../sessions.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Plugins and extensions. Plugins are chosen when skillhost is started; what clients can do is look at them. */
export const plugins: MethodFamily = {
  "plugins.list": async (call) => ({ plugins: await list(call) }),
  async "session.plugins.list"(call) {
    findSession(call.server, call.params);
    return { plugins: await list(call) };
  },
  "plugins.marketplaces.list": () => ({ marketplaces: [] }),
  "plugins.marketplaces.refresh": ({ params }) => {
    const name = params.optionalText("name");
    if (name !== undefined) throw new Error(`There is no marketplace ${JSON.stringify(name)}.`);
    return { results: [] };
  },
  "plugins.updateAll": () => ({ results: [] }),
  "plugins.builtin.set"({ server, params }) {
    const paths = params.texts("paths");
    const relative = paths.find((path) => !isAbsolute(path));
    if (relative !== undefined) throw badParams(params.method, `${JSON.stringify(relative)} is not an absolute path.`);
    server.pluginDirectories = paths;
  },
  "sessions.setAdditionalPlugins"({ params }) {
    if (params.records("plugins").length === 0) return {};
    throw notSupported(`${params.method} is not supported by skillhost: name the folders of plugins in pluginDirectories of the session.`);
  },
  "session.extensions.list"({ server, params }) {
    findSession(server, params);
    return { extensions: [] };
  },
  "session.extensions.reload"({ server, params }) {
    findSession(server, params);
  },
  "session.extensions.enable": unknownExtension,
  "session.extensions.disable": unknownExtension,
  "secrets.addFilterValues"({ server, params }) {
    for (const value of params.texts("values")) if (value.length >= 4) server.secrets.add(value);
    return { ok: true };
  },
};

function unknownExtension({ server, params }: Call): never {
  findSession(server, params);
  throw new Error(`Extension not found: ${params.text("id")}. No extensions are attached to this session.`);
}

async function list({ server }: Call): Promise<readonly object[]> {
  const host = await server.host();
  return host.plugins.map(({ name, version, state }) => ({
    name,
    marketplace: "",
    ...(version !== undefined && { version }),
    enabled: state === "active",
  }));
}

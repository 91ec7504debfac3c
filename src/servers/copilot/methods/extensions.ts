import { HostError } from "../../../base/errors.ts";
import { discoverUserExtensions, type SessionExtensions } from "../extensions/session-extensions.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Extensions: programs that attach to a session as clients. */
export const extensions: MethodFamily = {
  "session.extensions.list": ({ server, params }) => ({ extensions: findSession(server, params).extensions?.list() ?? [] }),
  async "session.extensions.reload"({ server, params }) {
    await findSession(server, params).extensions?.reload();
  },
  "extensions.discover": ({ server: { options } }) => ({
    extensions: discoverUserExtensions(options.extensionsDirectory).map(({ id, name, file, source }) => {
      return { id, name, path: file, source, enabled: true };
    }),
    mode: "load_only",
  }),
  "session.extensions.enable": (call) => extensionsOf(call).enable(call.params.text("id")),
  "session.extensions.disable": (call) => extensionsOf(call).disable(call.params.text("id")),
};

function extensionsOf({ server, params }: Call): SessionExtensions {
  const { extensions } = findSession(server, params);
  if (extensions !== undefined) return extensions;
  const advice = "Create or resume it with requestExtensions: true.";
  throw new HostError("EXTENSION_UNKNOWN", `Extension not found: ${params.text("id")}. This session has no extensions. ${advice}`);
}

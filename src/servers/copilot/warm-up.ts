import type { Host } from "../../host/host.ts";
// What nearly every client asks for first.
import "./clients/client-plugins.ts";
import "./sessions/mcp-config-file.ts";
import "./methods/lifecycle.ts";
import "./methods/messages.ts";
import "./plugins/plugin-library.ts";

/** Loads what a host loads with its first session: the plugins that every session has. */
export async function warmUp(host: Host): Promise<void> {
  const session = await host.createSession({ persist: false }, { awaitsSources: false });
  await session.disconnect();
}

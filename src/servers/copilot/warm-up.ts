import type { Host } from "../../host/host.ts";
// Modules that almost every client needs first.
import "./clients/client-plugins.ts";
import "./sessions/mcp-config-file.ts";
import "./methods/lifecycle.ts";
import "./methods/messages.ts";
import "./plugins/plugin-library.ts";

/** Makes the host load what its first session needs: the plugins that every session has. */
export async function warmUp(host: Host): Promise<void> {
  const session = await host.createSession({ persist: false }, { awaitsSources: false });
  await session.disconnect();
}

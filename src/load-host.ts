import type { OpenInspector } from "./host/create-host.ts";
import type { Host } from "./host/host.ts";
import type { HostOptions } from "./host/host-options.ts";

/**
 * Starts a host: loads the skill directories and watches them, unless `watch` is false. Settles when all are loaded;
 * what is wrong with one is in `host.diagnostics` and does not affect the others.
 * @throws HostError `HOST_OPTIONS` naming the option that is unknown or of the wrong type.
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  // Modules that only define tools import this package, too, and need nothing of a host.
  const host = await import("./host/create-host.ts");
  return host.createHost(options, openInspector);
}

/** How `host.inspect` finds the inspector. A program that does not use it loads nothing of it. */
const openInspector: OpenInspector = async (host, options) => {
  const { serveInspector } = await import("./servers/inspector/serve-inspector.ts");
  return serveInspector(host, options);
};

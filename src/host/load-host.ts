import type { Host } from "./host.ts";
import type { HostOptions } from "./host-options.ts";

/**
 * Starts a host: loads the skill directories and watches them, unless `watch` is false. Settles when all are loaded;
 * what is wrong with one is in `host.diagnostics` and does not affect the others.
 * @throws HostError `HOST_OPTIONS` naming the option that is unknown or of the wrong type.
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  // Modules that only define tools import this package, too, and need nothing of a host.
  const host = await import("./create-host.ts");
  return host.createHost(options);
}

import type { Host } from "../../host/host.ts";
import type { Inspector, InspectorOptions } from "../../host/inspection.ts";

/** As `host.inspect`. */
export async function serveInspector(host: Host, options: InspectorOptions = {}): Promise<Inspector> {
  // Programs that open no inspector load nothing of it.
  const { serveHost } = await import("./inspect-host.ts");
  return serveHost(host, options, undefined);
}

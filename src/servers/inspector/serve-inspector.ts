import type { Host } from "../../host/host.ts";
import type { InspectorOptions } from "./inspect-host.ts";
import type { Inspector } from "./inspector-server.ts";

/**
 * Serves the inspector of a host on this machine: a page that shows skills, tools, sessions, calls and MCP servers while they change, and the
 * feed that it reads, which docs/inspector.md describes. Open `url` in a browser; a program that has it can call tools. The caller disposes of the
 * inspector before the host.
 * @throws HostError `INSPECTOR_OPTIONS`; `HTTP_LISTEN` when the port is in use.
 */
export async function serveInspector(host: Host, options: InspectorOptions = {}): Promise<Inspector> {
  // Programs that open no inspector load nothing of it.
  const { serveHost } = await import("./inspect-host.ts");
  return serveHost(host, options, undefined);
}

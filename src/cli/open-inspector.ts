import type { Host } from "../host/host.ts";
import type { CommandContext } from "./command-context.ts";

/** Serves the inspector of a host, and prints its address to stderr, because stdout may be a protocol or a file. Undefined: it was not asked for. */
export async function openInspector(
  { out }: CommandContext,
  host: Host,
  asked: number | boolean | undefined,
): Promise<AsyncDisposable | undefined> {
  if (asked === undefined || asked === false) return undefined;
  const { serveInspector } = await import("../servers/inspector/serve-inspector.ts");
  const inspector = await serveInspector(host, typeof asked === "number" ? { port: asked } : {});
  out.note(`Inspector: ${inspector.url}`);
  return inspector;
}

// Functions of this package that load what they need when they are called: modules that only define tools import it, too.
import type { OpenInspector } from "./host/create-host.ts";
import type { Host } from "./host/host.ts";
import type { HostOptions } from "./host/host-options.ts";
import type { ProgramOutcome, ProgramSpec } from "./io/process/child-process.ts";

/**
 * Starts a host: loads the skill directories and watches them, unless `watch` is false. Settles when all are loaded;
 * what is wrong with one is in `host.diagnostics` and does not affect the others.
 * @throws HostError `HOST_OPTIONS` naming the option that is unknown or of the wrong type.
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  const host = await import("./host/create-host.ts");
  return host.createHost(options, openInspector);
}

/** How `host.inspect` finds the inspector. A program that does not use it loads nothing of it. */
const openInspector: OpenInspector = async (host, options) => {
  const { serveInspector } = await import("./servers/inspector/serve-inspector.ts");
  return serveInspector(host, options);
};

/**
 * Runs a program to its end, without a shell and with a minimal environment, which contains no keys and tokens of the host. Its
 * process group is killed when it ends and when `signal` fires. Never rejects: a failed start is an outcome.
 */
export async function runProgram(spec: ProgramSpec): Promise<ProgramOutcome> {
  const processes = await import("./io/process/child-process.ts");
  return processes.runProgram(spec);
}

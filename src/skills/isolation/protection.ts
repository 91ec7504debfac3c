import { HostError } from "../../base/errors.ts";
import { findSandbox, type Sandbox } from "../../io/process/enclose-process.ts";

/** How far this machine enforces the limits of isolated code. */
export interface Protection {
  /** `enforced`: what is not declared is not reached. `partly`: as far as Node.js refuses it. `not-enforced`: everything is reached. */
  readonly state: "enforced" | "partly" | "not-enforced";
  /** By what, or why not. */
  readonly reason: string;
}

/** Describes what a sandbox promises. */
function protectionOf(sandbox: Sandbox): Protection {
  if (sandbox.kind === "system" || sandbox.kind === "runtime") return { state: "enforced", reason: sandbox.by };
  if (sandbox.kind === "none") return { state: "not-enforced", reason: sandbox.why };
  const network = sandbox.limitsNetwork ? "addresses of skills that declare hosts" : "the network";
  const open = `${network}, native code, links and signals to other processes are not limited`;
  return { state: "partly", reason: `${sandbox.by}; ${open}, because ${sandbox.why}` };
}

/** Why something of a skill that is isolated as `strict` does not run here. `what`: plural, such as "Programs". */
export function refusal(what: string, why: string): HostError {
  const message = `${what} of this skill do not run, because this machine cannot enforce their limits: ${why}. Install bubblewrap (Linux) or @anthropic-ai/sandbox-runtime (macOS), or choose the isolation "process" to run them anyway.`;
  return new HostError("ISOLATION_NOT_ENFORCED", message);
}

/** How far this machine enforces the limits of isolated code. */
export async function findProtection(): Promise<Protection> {
  return protectionOf(await findSandbox());
}

import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { waitFor } from "../base/wait.ts";
import { createScope, type OwnedScope } from "../io/scope.ts";
import { type Contributions, collectContributions, type PluginPlace } from "./contributions.ts";
import type { Plugin } from "./define-plugin.ts";

/** The outcome of an activation. A failure is a value, so that dependent plugins can quote the reason. */
export type Activation =
  | { readonly kind: "active"; readonly contributions: Contributions; readonly scope: OwnedScope }
  | { readonly kind: "failed"; readonly diagnostics: readonly Diagnostic[] };

export interface ActivationLimits {
  /** Milliseconds for the activation, and for the disposal. */
  readonly timeout: number;
  /** Ends the wait: the host closes. */
  readonly signal: AbortSignal;
}

/**
 * Activates a plugin, all or nothing: when it throws or takes too long, its contributions are dropped and what it opened is
 * disposed of. Never rejects.
 */
export async function activatePlugin(plugin: Plugin, place: PluginPlace, limits: ActivationLimits): Promise<Activation> {
  const scope = createScope();
  const { api, seal } = collectContributions(place, scope);
  try {
    // A synchronous exception becomes a rejection.
    const work = Promise.resolve().then(() => plugin.activate(api));
    await withinActivation(work, limits);
    return { kind: "active", contributions: seal(), scope };
  } catch (error) {
    seal();
    const message = `Plugin "${plugin.name}" was not activated, and nothing that it added is used: ${errorMessage(error)}`;
    const failure: Diagnostic = { severity: "error", code: "PLUGIN_ACTIVATION", source: plugin.name, message };
    return { kind: "failed", diagnostics: [failure, ...(await disposeScope(plugin.name, scope, limits.timeout))] };
  }
}

/** Waits for a part of an activation. @throws HostError `PLUGIN_TIMEOUT`. */
export function withinActivation<T>(work: Promise<T>, { timeout, signal }: ActivationLimits): Promise<T> {
  return waitFor(work, { milliseconds: timeout, signal, expired: () => late(timeout) });
}

/** Disposes of what a plugin opened, within a time limit. Returns the errors. Never rejects. */
export async function disposeScope(name: string, scope: OwnedScope, timeout: number): Promise<readonly Diagnostic[]> {
  const report = (message: string): Diagnostic => ({ severity: "warning", code: "PLUGIN_DISPOSE", source: name, message });
  try {
    const errors = await waitFor(scope.dispose(), { milliseconds: timeout, expired: () => late(timeout) });
    return errors.map((error) => report(`Plugin "${name}" failed during disposal: ${errorMessage(error)}`));
  } catch (error) {
    return [report(`Plugin "${name}" did not finish its disposal: ${errorMessage(error)}`)];
  }
}

function late(timeout: number): HostError {
  const advice = "It may be waiting for a connection, a child process or a promise that never settles.";
  return new HostError("PLUGIN_TIMEOUT", `it took longer than ${timeout / 1000} seconds. ${advice}`);
}

import { orderByRequirements } from "../base/dependency-order.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { nameTaken } from "./named-contributions.ts";
import type { PluginLife } from "./plugin-life.ts";
import type { PluginSlot } from "./plugin-slot.ts";
import { inCircle } from "./plugin-standing.ts";
import type { Candidate } from "./prepare-plugin.ts";

interface Entrant {
  readonly slot: PluginSlot;
  readonly candidate: Candidate;
}

/**
 * Brings slots to life for the first time: all are found and checked before the first is activated, and each is activated
 * after those that it requires. Never rejects.
 */
export async function activateAll(slots: readonly PluginSlot[], life: PluginLife, closing: AbortSignal): Promise<void> {
  const entrants: Entrant[] = [];
  for (const slot of slots) {
    if (closing.aborted) break;
    const prepared = await life.prepare(slot);
    slot.attempted = prepared.kind === "ready" ? prepared.candidate.files : prepared.files;
    if (prepared.kind === "failed") await life.fail(slot, prepared);
    else if (entrants.some(({ candidate }) => candidate.plugin.name === prepared.candidate.plugin.name)) {
      await refuse({ slot, candidate: prepared.candidate }, life, nameTaken({ ...slot, name: prepared.candidate.plugin.name }));
    } else entrants.push({ slot, candidate: prepared.candidate });
  }
  await activateInOrder(entrants, life, closing);
}

async function activateInOrder(entrants: readonly Entrant[], life: PluginLife, closing: AbortSignal): Promise<void> {
  const { order, cycles } = orderByRequirements(entrants.map(({ candidate: { plugin, requires } }) => ({ name: plugin.name, requires })));
  for (const index of order) {
    const entrant = entrants[index]!;
    const circle = cycles.get(index);
    if (closing.aborted) await entrant.candidate.scope.dispose();
    else if (circle !== undefined) await refuse(entrant, life, closedCircle(entrant.candidate.plugin.name, circle));
    else await life.enter(entrant.slot, entrant.candidate);
  }
  for (const index of cycles.keys()) entrants[index]!.slot.isHeldBack = true;
}

async function refuse({ slot, candidate }: Entrant, life: PluginLife, why: Diagnostic): Promise<void> {
  const { plugin, diagnostics, scope } = candidate;
  await life.fail(slot, { name: plugin.name, diagnostics: [...diagnostics, why], scope });
}

function closedCircle(name: string, way: readonly string[]): Diagnostic {
  const message = `Plugin "${name}" was not activated: it ${inCircle(way)}`;
  return { severity: "error", code: "PLUGIN_REQUIRES", source: name, message };
}

import { isPlainRecord } from "../../../base/read-fields.ts";
import type { Params } from "../framing/params.ts";
import { badParams } from "../framing/rpc-error.ts";

type Value = Readonly<Record<string, unknown>>;

/** Options that a session here has nothing for, and when they would have meant something. */
const ineffective: Readonly<Record<string, (value: unknown) => boolean>> = {
  canvases: isFilledList,
  cloud: isPlainRecord,
  enableCitations: isTrue,
  enableFileChangeTracking: isTrue,
  enableOnDemandInstructionDiscovery: isTrue,
  memory: (value) => isPlainRecord(value) && value["enabled"] === true,
  reasoningSummary: (value) => typeof value === "string" && value !== "none",
  remoteSession: (value) => typeof value === "string" && value !== "off",
  requestAutoModeSwitch: isTrue,
  requestCanvasRenderer: isTrue,
  sessionLimits: (value) => isPlainRecord(value) && Object.values(value as Value).some((limit) => limit !== null && limit !== undefined),
};

/** What a client asked for that has no effect, for it to be told. */
export function ineffectiveOptions(params: Params): readonly string[] {
  return Object.keys(ineffective).filter((key) => params.get(key) !== undefined && ineffective[key]!(params.get(key)));
}

/** What a client relies on for its safety is refused rather than passed over. */
export function refuseUnenforceable(params: Params): void {
  const reason = unenforceable.find((key) => holdsRules(params.get(key)));
  if (reason === undefined) return;
  throw badParams(params.method, `${reason} is not enforced by skillhost. Give the rules to session.permissions.configure instead.`);
}

const unenforceable = ["managedSettings", "enableManagedSettings"] as const;

function holdsRules(value: unknown): boolean {
  return value === true || (isPlainRecord(value) && Object.keys(value).length > 0);
}

function isTrue(value: unknown): boolean {
  return value === true;
}

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

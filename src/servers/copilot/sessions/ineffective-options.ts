import { isPlainRecord } from "../../../base/read-fields.ts";
import type { Params } from "../framing/params.ts";
import { badParams } from "../framing/rpc-error.ts";

type Value = Readonly<Record<string, unknown>>;

/** Options that a session here has nothing for, and when they would have meant something. */
const ineffective: Readonly<Record<string, (value: unknown) => boolean>> = {
  canvasProvider: isPlainRecord,
  canvases: isFilledList,
  capi: (value) => isPlainRecord(value) && Object.values(value).includes(true),
  cloud: isPlainRecord,
  configDir: isText,
  contextTier: (value) => isText(value) && value !== "default",
  embeddingCacheStorage: (value) => value === "persistent",
  enableCitations: isTrue,
  // Nothing is discovered, no hooks are read from files and no git is run, so that false is as it should be.
  enableConfigDiscovery: isTrue,
  enableFileHooks: isTrue,
  enableFileChangeTracking: isTrue,
  enableHostGitOperations: isTrue,
  enableOnDemandInstructionDiscovery: isTrue,
  enableSessionStore: isTrue,
  enableSessionTelemetry: isTrue,
  expAssignments: (value) => isPlainRecord(value) && Object.keys(value).length > 0,
  extensionInfo: isPlainRecord,
  isExperimentalMode: isTrue,
  // Tokens of a sign-in in a browser are kept on disk; those that a client gives are not.
  mcpOAuthTokenStorage: (value) => value === "in-memory",
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

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import type { FileGuard } from "../io/read-bounded.ts";
import { checkSignature, named, type VerifiedSignatures } from "./check-signature.ts";
import { CheckedFolder, compareFiles, HeldBytes } from "./checked-folder.ts";
import { digestFolder, signatureFileName } from "./folder-digests.ts";
import { FolderView } from "./folder-view.ts";
import type { SignatureStatement } from "./signature-statement.ts";
import { type SkillScope, scopeOfFolder, type TrustMode, type TrustPolicy, trustModes, wordFor } from "./trust-policy.ts";
import type { TrustedKeys } from "./trusted-keys.ts";

/** How a skill stands, for people who look at it. */
export interface TrustState {
  readonly scope: SkillScope;
  readonly mode: TrustMode;
  /** `invalid`: there is a signature, and it is not right about this folder or of nobody who is trusted. */
  readonly status: "signed" | "unsigned" | "invalid";
  /** The key that the signature names, with its owner's name where it is trusted. */
  readonly key?: { readonly id: string; readonly name: string };
  readonly signedAt?: string;
  readonly expires?: string;
}

/** What came of looking at a folder before anything of it is used. */
export interface Admission {
  /** `refused`: nothing of it may run. */
  readonly kind: "admitted" | "refused";
  readonly state: TrustState;
  readonly diagnostics: readonly Diagnostic[];
  /** Every file that was looked at: when one of them changes, the folder has to be looked at again. */
  readonly files: ReadonlySet<string>;
  /** What of the name, the version and the contracts of its tools is not as it was signed. */
  identityFault(name: string, version: string | undefined): Diagnostic | undefined;
  /** `signature`: absent for a definition that stands in a signed file, so that it cannot be another one. */
  toolFault(name: string, signature?: string): Diagnostic | undefined;
  /** What was found in the folder, for whoever loads it now. Absent: nothing that is certain. */
  readonly view?: FolderView;
  /** The bytes that were checked, for whoever loads the folder now. */
  readonly guard?: FileGuard;
  /** Present where the signature is required: the only files of the skill that may be used, now and later. */
  readonly tree?: CheckedFolder;
  /** The load is over. Not taken: what was admitted before is what holds. */
  conclude(isTaken: boolean): void;
}

export interface SkillTrust {
  /** Undefined: nobody asked for this folder to be looked at. */
  admit(folder: string, options?: { readonly scope?: SkillScope }): Admission | undefined;
  /** A folder is a skill no longer. */
  forget(folder: string): void;
}

export interface SkillTrustOptions {
  readonly policy: TrustPolicy;
  readonly keys: TrustedKeys;
  readonly verified: VerifiedSignatures;
  readonly now?: () => number;
}

/** Looks at the signatures of skills as a policy has it. */
export function createSkillTrust(options: SkillTrustOptions): SkillTrust {
  return new FolderSignatures(options);
}

class FolderSignatures implements SkillTrust {
  readonly #options: SkillTrustOptions;
  /** What serves, by folder. */
  readonly #serving = new Map<string, CheckedFolder>();
  readonly #realPathOf = createRealPaths();

  constructor(options: SkillTrustOptions) {
    this.#options = options;
  }

  admit(folder: string, options: { readonly scope?: SkillScope } = {}): Admission | undefined {
    const { scope, mode } = this.#standingOf(folder, options.scope);
    if (scope === undefined || mode === "off") return undefined;
    const isEnforced = mode === "require";
    const { keys, verified, now = Date.now } = this.#options;
    const signature = checkSignature(folder, { keys, verified, isOfProject: scope !== "user", now: now() });
    const about = { folder, scope, mode };
    if (signature.kind === "unsigned") return unsigned(about);
    if (signature.kind === "refused") {
      const { diagnostic, keyId } = signature;
      return refusal(about, { status: "invalid", ...(keyId && { key: { id: keyId, name: keys.find(keyId)?.name ?? "" } }) }, [diagnostic]);
    }
    const held = new HeldBytes(folder);
    const view = new FolderView(folder);
    const found = digestFolder(folder, {
      refusesGit: isEnforced,
      onRead(file, read, digest) {
        held.hold(file, read);
        view.noteRead(file, read, digest);
      },
      onList: (path, entries) => view.noteList(path, entries),
    });
    const { statement, key } = signature;
    const faults = compareFiles(folder, statement, found, named(key));
    const state = {
      key: { id: key.id, name: key.name },
      signedAt: statement.created,
      ...(statement.expires && { expires: statement.expires }),
    };
    if (faults.length > 0)
      return refusal(about, { status: "invalid", ...state }, faults, [...statement.files.keys(), ...found.files.keys()]);
    const tree = isEnforced ? this.#treeOf(folder, statement) : undefined;
    tree?.hold(held);
    return {
      ...base(about, "admitted", { status: "signed", ...state }, [], statement.files.keys()),
      identityFault: (name, version) => identityFault(about, statement, name, version),
      toolFault: (name, signature) => toolFault(about, statement, name, signature),
      view,
      guard: tree ?? held,
      ...(tree && { tree }),
      conclude: (isTaken) => {
        held.release();
        tree?.release();
        if (isTaken && tree !== undefined) this.#serving.set(folder, tree);
      },
    };
  }

  forget(folder: string): void {
    this.#serving.delete(folder);
  }

  /**
   * By where the folder really lies, unless its own path is held to a signature: what the path leads to may be exchanged at any
   * moment, the path is what somebody configured.
   */
  #standingOf(folder: string, given: SkillScope | undefined): Standing {
    const real = this.#standingAt(this.#realPathOf(folder), given);
    if (real.mode === "require" || (real.scope === undefined && OWN_NAME.test(folder))) return real;
    const named = this.#standingAt(resolve(folder), given);
    return named.mode === "require" ? named : real;
  }

  #standingAt(path: string, given: SkillScope | undefined): Standing {
    const scope = given ?? scopeOfFolder(path);
    return { scope, mode: scope === undefined ? "off" : wordFor(trustModes, this.#options.policy, scope, path) };
  }

  /** The one that serves if it vouches for the same files, so that what was made of these can stay. */
  #treeOf(folder: string, statement: SignatureStatement): CheckedFolder {
    const { now = Date.now } = this.#options;
    const tree = new CheckedFolder(folder, { ...statement, now });
    const before = this.#serving.get(folder);
    return before?.equals(tree) === true ? before : tree;
  }
}

// Where package managers put this package, or a link to it.
const OWN_NAME = /[\\/]node_modules[\\/]skillhost[\\/]/;

interface Standing {
  readonly scope: SkillScope | undefined;
  readonly mode: TrustMode;
}

interface About {
  readonly folder: string;
  readonly scope: SkillScope;
  readonly mode: TrustMode;
}

type StatePart = Omit<TrustState, "scope" | "mode">;

function unsigned(about: About): Admission {
  const { folder, mode, scope } = about;
  const isRequired = mode === "require";
  // Most skills are not, and who is warned of each of them learns to look away.
  if (!isRequired) return base(about, "admitted", { status: "unsigned" }, [], []);
  const advice = `The policy requires signatures for skills of the scope "${scope}". Sign it with "skillhost sign", or ask its author to.`;
  const message = `This skill is not signed, so changes to its files cannot be detected. ${advice}`;
  return base(about, "refused", { status: "unsigned" }, [{ severity: "error", code: "TRUST_UNSIGNED", file: folder, message }], []);
}

/** Under `warn` it loads all the same. */
function refusal(about: About, state: StatePart, faults: readonly Diagnostic[], files: Iterable<string> = []): Admission {
  const isRequired = about.mode === "require";
  const told = faults.map((fault): Diagnostic => ({ ...fault, severity: isRequired ? "error" : "warning" }));
  return base(about, isRequired ? "refused" : "admitted", state, told, files);
}

function base(
  { folder, scope, mode }: About,
  kind: Admission["kind"],
  state: StatePart,
  diagnostics: readonly Diagnostic[],
  paths: Iterable<string>,
): Admission {
  return {
    kind,
    state: Object.freeze({ scope, mode, ...state }),
    diagnostics,
    files: new Set([
      join(folder, signatureFileName),
      ...[...paths].map((path) => `${folder}${sep}${sep === "/" ? path : path.replaceAll("/", sep)}`),
    ]),
    identityFault: () => undefined,
    toolFault: () => undefined,
    conclude: () => {},
  };
}

function identityFault(
  { folder, mode }: About,
  { skill, version }: SignatureStatement,
  name: string,
  actual: string | undefined,
): Diagnostic | undefined {
  if (name === skill && actual === version) return undefined;
  const shown = (text: string, number: string | undefined): string => JSON.stringify(number === undefined ? text : `${text} ${number}`);
  const message = `This skill was signed as ${shown(skill, version)}, but is ${shown(name, actual)} now. Restore the name and version, or have it signed again.`;
  return {
    severity: mode === "require" ? "error" : "warning",
    code: "TRUST_NAME",
    file: join(folder, signatureFileName),
    source: name,
    message,
  };
}

function toolFault(
  { folder, mode }: About,
  { tools }: SignatureStatement,
  name: string,
  signature: string | undefined,
): Diagnostic | undefined {
  if (signature === undefined ? tools.has(name) : tools.get(name) === signature) return undefined;
  const how = tools.has(name) ? "differs from its definition when the skill was signed" : "did not exist when the skill was signed";
  const result = mode === "require" ? ", so it is not available" : "";
  const message = `The tool "${name}" ${how}${result}. Its definition may depend on this machine. If the change is intended, have the skill signed again.`;
  return { severity: mode === "require" ? "error" : "warning", code: "TRUST_TOOL_CHANGED", file: join(folder, signatureFileName), message };
}

/** Where folders really lie. Those of one parent are looked at one after another, so what was found of it serves for a moment. */
function createRealPaths(): (folder: string) => string {
  let parent = { path: "", real: "", until: 0 };
  return (folder) => {
    try {
      if (lstatSync(folder).isSymbolicLink()) return realpathSync.native(folder);
      const now = performance.now();
      const path = dirname(folder);
      if (parent.path !== path || parent.until < now) parent = { path, real: realpathSync.native(path), until: now + 100 };
      return join(parent.real, basename(folder));
    } catch {
      // Gone, or not to be looked at: loading it will say so.
      return folder;
    }
  };
}

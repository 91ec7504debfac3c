import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import type { FileGuard } from "../io/read-bounded.ts";
import { CheckedFolder, compareFiles, FolderView, HeldBytes } from "./checked-folder.ts";
import { digestFolder, signatureFileName } from "./folder-digests.ts";
import { checkSignature, named, type SignatureStatement, type VerifiedSignatures } from "./skill-signature.ts";
import { type SkillScope, scopeOfFolder, type TrustMode, type TrustPolicy, trustModes, wordFor } from "./trust-policy.ts";
import type { TrustedKeys } from "./trusted-keys.ts";

/** The signature status of a skill, for display. */
export interface TrustState {
  readonly scope: SkillScope;
  readonly mode: TrustMode;
  /** `invalid`: the signature does not match this folder, or is not from a trusted key. */
  readonly status: "signed" | "unsigned" | "invalid";
  /** The key of the signature, with its owner's name if the key is trusted. */
  readonly key?: { readonly id: string; readonly name: string };
  readonly signedAt?: string;
  readonly expires?: string;
}

/** The result of checking a folder before its use. */
export interface Admission {
  /** `refused`: no code of it may run. */
  readonly kind: "admitted" | "refused";
  readonly state: TrustState;
  readonly diagnostics: readonly Diagnostic[];
  /** All checked files: when one of them changes, the folder must be checked again. */
  readonly files: ReadonlySet<string>;
  /** The differences of name, version and tool contracts from the signed ones. */
  identityFault(name: string, version: string | undefined): Diagnostic | undefined;
  /** `signature`: absent for a definition in a signed file, which cannot change. */
  toolFault(name: string, signature?: string): Diagnostic | undefined;
  /** The content of the folder, for the subsequent load. Absent: not certain. */
  readonly view?: FolderView;
  /** The checked bytes, for the subsequent load. */
  readonly guard?: FileGuard;
  /** Present if the signature is required: the only files of the skill that may be used, now and later. */
  readonly tree?: CheckedFolder;
  /** Ends the load. If it was not published, the previous version stays admitted. */
  conclude(isTaken: boolean): void;
}

export interface SkillTrustOptions {
  readonly policy: TrustPolicy;
  readonly keys: TrustedKeys;
  readonly verified: VerifiedSignatures;
  readonly now?: () => number;
}

/** Checks the signatures of skills by a policy. */
export class SkillTrust {
  readonly #options: SkillTrustOptions;
  /** The admitted version, by folder. */
  readonly #serving = new Map<string, CheckedFolder>();
  readonly #realPathOf = createRealPaths();

  constructor(options: SkillTrustOptions) {
    this.#options = options;
  }

  /** Undefined: no check is required for this folder. */
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

  /** The folder is no longer a skill. */
  forget(folder: string): void {
    this.#serving.delete(folder);
  }

  /**
   * By the real path of the folder, unless its configured path requires a signature: the target of a path can be replaced at
   * any time, while the path is what the user configured.
   */
  #standingOf(folder: string, given: SkillScope | undefined): Standing {
    const realPath = this.#realPathOf(folder);
    const real = this.#standingAt(realPath, given);
    if (real.mode === "require" || (real.scope === undefined && ownPackageFolder.test(folder))) return real;
    const namedPath = resolve(folder);
    if (namedPath === realPath) return real;
    const named = this.#standingAt(namedPath, given);
    return named.mode === "require" ? named : real;
  }

  #standingAt(path: string, given: SkillScope | undefined): Standing {
    const scope = given ?? scopeOfFolder(path);
    return { scope, mode: scope === undefined ? "off" : wordFor(trustModes, this.#options.policy, scope, path) };
  }

  /** The admitted version if its signature covers the same files, so that modules loaded from these can stay. */
  #treeOf(folder: string, statement: SignatureStatement): CheckedFolder {
    const { now = Date.now } = this.#options;
    const tree = new CheckedFolder(folder, { ...statement, now });
    const before = this.#serving.get(folder);
    return before?.equals(tree) === true ? before : tree;
  }
}

// The locations at which package managers install or link this package.
const ownPackageFolder = /[\\/]node_modules[\\/]skillhost[\\/]/;

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
  // Most skills are unsigned, and a warning for each would train users to ignore warnings.
  if (!isRequired) return base(about, "admitted", { status: "unsigned" }, [], []);
  const advice = `The policy requires signatures for skills of the scope "${scope}". Sign it with "skillhost sign", or ask its author to.`;
  const message = `This skill is not signed, so changes to its files cannot be detected. ${advice}`;
  return base(about, "refused", { status: "unsigned" }, [{ severity: "error", code: "TRUST_UNSIGNED", file: folder, message }], []);
}

/** With `warn` it loads nevertheless. */
function refusal(about: About, state: StatePart, faults: readonly Diagnostic[], files: Iterable<string> = []): Admission {
  const isRequired = about.mode === "require";
  const diagnostics = faults.map((fault): Diagnostic => ({ ...fault, severity: isRequired ? "error" : "warning" }));
  return base(about, isRequired ? "refused" : "admitted", state, diagnostics, files);
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

/** Real paths of folders. Siblings are checked in sequence, so the result of their parent is cached briefly. */
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
      // Missing or inaccessible: loading reports it.
      return folder;
    }
  };
}

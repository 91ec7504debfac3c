import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Scope } from "../../io/scope.ts";
import type { CheckedFolder } from "../../trust/checked-folder.ts";

export type OpenedPrograms = { readonly ok: true; readonly folder: string } | { readonly ok: false; readonly diagnostic: Diagnostic };

/**
 * A private copy of a checked folder for programs, because the system opens them, and what they read, by name. Created at the first call,
 * shared by the tools of the skill, and deleted with the last of them.
 */
export class CheckedPrograms {
  static readonly #known = new WeakMap<CheckedFolder, CheckedPrograms>();
  readonly #tree: CheckedFolder;
  #folder: string | undefined;
  #users = 0;

  private constructor(tree: CheckedFolder) {
    this.#tree = tree;
  }

  /** Returns the copy of a folder, which lives until the scopes of all its users have ended. */
  static of(tree: CheckedFolder, scope: Scope): CheckedPrograms {
    const programs = CheckedPrograms.#known.get(tree) ?? new CheckedPrograms(tree);
    CheckedPrograms.#known.set(tree, programs);
    programs.#users++;
    scope.onDispose(() => programs.#release());
    return programs;
  }

  /** Checks the skill's folder again: a folder that no longer matches its signature must not start a program, though the copy could. */
  open(): OpenedPrograms {
    const diagnostic = this.#tree.recheck();
    if (diagnostic !== undefined) return { ok: false, diagnostic };
    if (this.#folder !== undefined) return { ok: true, folder: this.#folder };
    const folder = mkdtempSync(join(tmpdir(), "skillhost-checked-"));
    const fault = copyFiles(this.#tree, folder);
    if (fault === undefined) {
      this.#folder = folder;
      return { ok: true, folder };
    }
    rmSync(folder, { recursive: true, force: true });
    return { ok: false, diagnostic: fault };
  }

  #release(): void {
    this.#users--;
    if (this.#users > 0 || this.#folder === undefined) return;
    rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }
}

function copyFiles(tree: CheckedFolder, target: string): Diagnostic | undefined {
  try {
    for (const path of tree.files.keys()) {
      const source = join(tree.folder, path);
      const read = tree.read(source);
      if (!read.ok) return read.diagnostic;
      const file = join(target, path);
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      writeFileSync(file, read.bytes);
      // No signature covers the mode, and it does not change the bytes of the file.
      chmodSync(file, 0o600 | (statSync(source, { throwIfNoEntry: false })?.mode ?? 0));
    }
    return undefined;
  } catch (error) {
    const message = `The verified files cannot be copied for this program: ${errorMessage(error)}. Free space in ${tmpdir()}, or set TMPDIR to another folder.`;
    return { severity: "error", code: "TRUST_COPY", file: tree.folder, message };
  }
}

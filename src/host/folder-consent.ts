import type { Diagnostic } from "../base/diagnostic.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import { projectOfRoot } from "../skills/store/package-skills.ts";
import type { RunConsent } from "../skills/store/skill-folder.ts";
import { fixedPart } from "../skills/store/skill-roots.ts";
import { type FolderTrust, trustRootOf, untrustedFolder } from "../trust/folder-trust.ts";

export interface FolderConsentOptions {
  readonly trust: FolderTrust;
  readonly workingDirectory: string;
  /** Told once of each folder that would have to be trusted. */
  report(diagnostic: Diagnostic): void;
}

/** Lets the code of a host's folders run, or keeps it from running, as they are trusted. */
export class FolderConsent {
  readonly #options: FolderConsentOptions;
  readonly #withheld = new Set<string>();
  readonly #reported = new Set<string>();

  constructor(options: FolderConsentOptions) {
    this.#options = options;
  }

  readonly mayRun = (path: string): boolean => {
    if (this.#options.trust.allows(path)) {
      this.#withheld.delete(path);
      return true;
    }
    return false;
  };

  /** Notes that something of a path was not run. */
  readonly onWithheld = (path: string): void => {
    const { workingDirectory, report } = this.#options;
    this.#withheld.add(path);
    const root = trustRootOf(path, workingDirectory);
    if (this.#reported.has(root)) return;
    this.#reported.add(root);
    report(untrustedFolder(root));
  };

  /** Why nothing of a path runs, with the folder that has to be trusted. */
  explain(path: string): Diagnostic {
    return untrustedFolder(trustRootOf(path, this.#options.workingDirectory));
  }

  forSkills(loader: ModuleLoader): RunConsent {
    const inspect = async (): Promise<readonly ToolRunner[]> => {
      // Few hosts meet a folder that is not trusted, and what reads modules without running them takes a while to load.
      const [{ createParser }, { createStaticRunner }] = await Promise.all([
        import("../advice/check-skills.ts"),
        import("../advice/static-runner.ts"),
      ]);
      return [createStaticRunner(loader, createParser())];
    };
    return { mayRun: this.mayRun, onWithheld: this.onWithheld, inspect };
  }

  /** Somebody names these roots, so their code may run. Gives the folders of which nothing was run until now. */
  name(roots: readonly string[]): readonly string[] {
    this.#options.trust.name(roots.map((root) => projectOfRoot(root) ?? fixedPart(root)));
    return [...this.#withheld].filter(this.mayRun);
  }
}

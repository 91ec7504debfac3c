import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError, toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import { projectOfRoot } from "../skills/store/package-skills.ts";
import type { RunConsent } from "../skills/store/skill-folder.ts";
import { fixedPart } from "../skills/store/skill-roots.ts";
import type { SkillStore } from "../skills/store/skill-store.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
import { type FolderTrust, trustRootOf, untrustedFolder } from "../trust/folder-trust.ts";
import { type PinPolicy, Pins } from "../trust/pins/pins.ts";
import { PushTrust } from "../trust/push-trust.ts";
import type { SkillTrust } from "../trust/skill-trust.ts";
import type { TrustSettings } from "../trust/trust-settings.ts";

/** What a host trusts of its skills. */
export class HostTrust {
  readonly settings: TrustSettings;
  /** For tools that programs and clients push. */
  readonly pushed: PushTrust;
  readonly #log: Logger;
  readonly #approvals: ApprovalStore;
  readonly #pins = new Map<PinPolicy, Pins>();

  constructor(settings: TrustSettings, approvals: ApprovalStore, log: Logger) {
    this.settings = settings;
    this.#approvals = approvals;
    this.#log = log;
    const { policy, keys, verified } = settings;
    const onError = (error: Error): void => log.error("The approved definitions of client tools could not be stored.", { error });
    this.pushed = new PushTrust({ mode: policy.external, keys, verified, approvals, onError });
  }

  /** For the store of skills: who has a say there. */
  get ofSkills(): { readonly trust: SkillTrust | undefined; pinsOf(folder: string): Pins | undefined } {
    return { trust: this.settings.skills, pinsOf: (folder) => this.#pinsFor(this.settings.definitionsFor(folder)) };
  }

  /** Approves what is held back of a skill, all of it or one tool, and has it offered. Gives how much that was. */
  async approve(store: SkillStore, skill: string, tool: string | undefined): Promise<number> {
    const folders = [...store.snapshot.folders.values()].filter((folder) => folder.skill?.name === skill);
    if (folders.length === 0) throw new HostError("SKILL_UNKNOWN", `Skill ${JSON.stringify(skill)} does not exist.`);
    const wanted = folders.flatMap(({ folder, held = [] }) =>
      held.filter(({ name }) => tool === undefined || name === tool).map((each) => ({ folder, ...each })),
    );
    if (wanted.length === 0) return 0;
    await this.#pinsFor("first-use")?.approve(wanted.map(({ subject }) => subject));
    await store.reconsider(new Set(wanted.map(({ folder }) => folder)));
    return wanted.length;
  }

  /** Settles when what was seen and found is kept. */
  async close(): Promise<void> {
    await this.settings.verified.keep();
    await this.pushed.kept();
    for (const pins of this.#pins.values()) await pins.kept();
  }

  #pinsFor(policy: PinPolicy): Pins | undefined {
    if (policy === "off") return undefined;
    const onError = (error: Error): void =>
      this.#log.error("The approved definitions of a skill could not be stored.", { error: toError(error) });
    const pins = this.#pins.get(policy) ?? new Pins({ approvals: this.#approvals, policy, family: "skill", onError });
    this.#pins.set(policy, pins);
    return pins;
  }
}

interface FolderConsentOptions {
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

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

/** The trust settings of a host's skills, and the approvals of their definitions. */
export class HostTrust {
  readonly settings: TrustSettings;
  /** The trust in tools that programs and clients add. */
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

  /** The options for the skill store. */
  get ofSkills(): { readonly trust: SkillTrust | undefined; pinsOf(folder: string): Pins | undefined } {
    return { trust: this.settings.skills, pinsOf: (folder) => this.#pinsFor(this.settings.definitionsFor(folder)) };
  }

  /** Approves all held-back definitions of a skill, or those of one tool, and makes them available. Returns their number. */
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

  /** Settles when all approvals and verified signatures are stored. */
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
  /** Called once for each folder that is not trusted. */
  report(diagnostic: Diagnostic): void;
}

/** Decides which folders of a host may run code, by their trust. */
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

  /** Records that the code of a path was not run. */
  readonly onWithheld = (path: string): void => {
    const { workingDirectory, report } = this.#options;
    this.#withheld.add(path);
    const root = trustRootOf(path, workingDirectory);
    if (this.#reported.has(root)) return;
    this.#reported.add(root);
    report(untrustedFolder(root));
  };

  /** Explains why the code of a path may not run, with the folder that has to be trusted. */
  explain(path: string): Diagnostic {
    return untrustedFolder(trustRootOf(path, this.#options.workingDirectory));
  }

  forSkills(loader: ModuleLoader): RunConsent {
    const inspect = async (): Promise<readonly ToolRunner[]> => {
      // Loaded on demand: few hosts have an untrusted folder, and these modules are large.
      const [{ createParser }, { createStaticRunner }] = await Promise.all([
        import("../advice/check-skills.ts"),
        import("../advice/static-runner.ts"),
      ]);
      return [createStaticRunner(loader, createParser())];
    };
    return { mayRun: this.mayRun, onWithheld: this.onWithheld, inspect };
  }

  /** Trusts roots because the program names them. Returns the folders whose code was withheld until now. */
  name(roots: readonly string[]): readonly string[] {
    this.#options.trust.name(roots.map((root) => projectOfRoot(root) ?? fixedPart(root)));
    return [...this.#withheld].filter(this.mayRun);
  }
}

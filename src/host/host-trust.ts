import { HostError, toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { SkillStore } from "../skills/store/skill-store.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
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
    const onError = (error: Error): void => log.error("Something of a pushed tool could not be kept.", { error });
    this.pushed = new PushTrust({ mode: policy.external, keys, verified, approvals, onError });
  }

  /** For the store of skills: who has a say there. */
  get ofSkills(): { readonly trust: SkillTrust | undefined; pinsOf(folder: string): Pins | undefined } {
    return { trust: this.settings.skills, pinsOf: (folder) => this.#pinsFor(this.settings.definitionsFor(folder)) };
  }

  /** Approves what is held back of a skill, all of it or one tool, and has it offered. Gives how much that was. */
  async approve(store: SkillStore, skill: string, tool: string | undefined): Promise<number> {
    const folders = [...store.snapshot.folders.values()].filter((folder) => folder.skill?.name === skill);
    if (folders.length === 0) throw new HostError("SKILL_UNKNOWN", `There is no skill ${JSON.stringify(skill)}.`);
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
    const onError = (error: Error): void => this.#log.error("Something of a skill could not be kept.", { error: toError(error) });
    const pins = this.#pins.get(policy) ?? new Pins({ approvals: this.#approvals, policy, family: "skill", onError });
    this.#pins.set(policy, pins);
    return pins;
  }
}

import type { Diagnostic } from "../base/diagnostic.ts";

/** A skill of a host, as plugins see it. */
export interface PluginSkill {
  readonly name: string;
  readonly folder: string;
  /**
   * `shadowed`: another skill with its name is used. `refused`: a requirement is not met. `untrusted`: its folder is not trusted.
   * `failed`: it could not be loaded.
   */
  readonly state: "active" | "disabled" | "shadowed" | "refused" | "untrusted" | "failed";
  /** The rule that decided the state. */
  readonly rule: string;
  /** Whether its files have an error and the last working version keeps running. */
  readonly stale: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

interface HostSkills {
  readonly all: () => readonly PluginSkill[];
  /** Loads changed files after the first load. */
  reload(): Promise<void>;
}

/** The skills of a host, for its plugins: they exist before them. */
export class PluginSkills {
  #host: HostSkills | undefined;
  #attach: (() => void) | undefined;
  readonly #attached = new Promise<void>((resolve) => {
    this.#attach = resolve;
  });

  /** Called once the skills are being loaded. */
  attach(host: HostSkills): void {
    this.#host ??= host;
    this.#attach?.();
  }

  async reload(): Promise<void> {
    await this.#attached;
    await this.#host!.reload();
  }

  find(folder: string): PluginSkill | undefined {
    return this.#host?.all().find((skill) => skill.folder === folder);
  }
}

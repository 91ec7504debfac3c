import { mkdirSync } from "node:fs";
import type { Diagnostic, PluginApi, SourceSnapshot, ToolSource } from "skillhost";
import { type FollowedSkills, type FollowOptions, follow } from "./follow-skills.ts";
import { waitAtMost } from "./wait-at-most.ts";

interface CatalogSourceOptions extends FollowOptions {
  /** Milliseconds for which a host waits for the catalog once. */
  readonly startupWait: number;
}

const retryMs = 5_000;
const nothing: readonly never[] = Object.freeze([]);

/** Keeps a folder of the host at what the catalog of a fleet says. It has no tools of its own: they are those of the skills. */
export class CatalogSource implements ToolSource {
  readonly id = "catalog";
  readonly #api: Pick<PluginApi, "skillIn" | "reloadSkills" | "log" | "signal">;
  readonly #options: CatalogSourceOptions;
  readonly #listeners = new Set<() => void>();
  readonly #started: Promise<void>;
  #followed: FollowedSkills | undefined;
  #snapshot: SourceSnapshot = { tools: nothing, skills: nothing, diagnostics: nothing };

  constructor(api: Pick<PluginApi, "skillIn" | "reloadSkills" | "log" | "signal">, options: CatalogSourceOptions) {
    this.#api = api;
    this.#options = options;
    mkdirSync(options.folder, { recursive: true });
    // After the activation, in which skills cannot be loaded.
    this.#started = new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#start());
  }

  get snapshot(): SourceSnapshot {
    return this.#snapshot;
  }

  /** Servers that are away do not keep a host from starting: it has the versions of last time. */
  ready(signal: AbortSignal): Promise<void> {
    return waitAtMost(this.#started, this.#options.startupWait, signal);
  }

  subscribe(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#started;
    await this.#followed?.[Symbol.asyncDispose]();
  }

  /** Settles when the versions of now are loaded, or when the plugin ends. */
  async #start(): Promise<void> {
    const { signal, log } = this.#api;
    while (!signal.aborted) {
      try {
        this.#followed = await follow(this.#api, { ...this.#options, logger: log, onProblems: (problems) => this.#report(problems) });
        return;
      } catch (error) {
        if (signal.aborted) return;
        const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
        this.#report([{ code: typeof code === "string" ? code : "FLEET_UNREACHABLE", message: `The catalog is not followed: ${message}` }]);
        await waitAtMost(new Promise(() => {}), retryMs, signal).catch(() => {
          // The loop ends.
        });
      }
    }
  }

  #report(problems: readonly { readonly code: string; readonly message: string }[]): void {
    const diagnostics = problems.map((problem): Diagnostic => ({ severity: "error", source: "nats", ...problem }));
    if (JSON.stringify(diagnostics) === JSON.stringify(this.#snapshot.diagnostics)) return;
    this.#snapshot = { ...this.#snapshot, diagnostics };
    for (const listener of this.#listeners) listener();
  }
}

import { extname } from "node:path";
import { type Diagnostic, formatDiagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { HostError } from "../base/errors.ts";
import { packageVersion } from "../base/package-version.ts";
import { createModuleLoader, type OwnedModuleLoader } from "../io/module-loader/create-module-loader.ts";
import { createCatalogMemo } from "../session/catalog-memo.ts";
import { createSession, type Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-config.ts";
import { createModuleRunner, moduleExtensions } from "../skills/module-runner.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import { SkillStore } from "../skills/skill-store.ts";
import { describeSkills } from "./describe-skills.ts";
import { type Explanation, explainName } from "./explain.ts";
import type { Host, HostEvents, SkillInfo } from "./host.ts";
import { type HostOptions, type ResolvedHostOptions, resolveHostOptions } from "./host-options.ts";
import { createSessionEnvironment, type EnvironmentParts } from "./session-environment.ts";
import { createSkillViews } from "./skill-views.ts";

/**
 * Starts a host: loads the skill directories and, unless told otherwise, watches them from then on. Settles when all
 * are loaded; what is wrong with one is in `host.diagnostics` and keeps no other back.
 * @throws HostError `HOST_OPTIONS` naming the option that is unknown or of the wrong type.
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  const host = new SkillHost(resolveHostOptions(options));
  await host.start();
  return host;
}

class SkillHost implements Host {
  readonly version = packageVersion;
  readonly #options: ResolvedHostOptions;
  readonly #loader: OwnedModuleLoader;
  readonly #store: SkillStore;
  readonly #parts: EnvironmentParts;
  readonly #events: Emitter<HostEvents>;
  readonly #sessions = new Set<Session>();
  /** What no skill's own diagnostics tell, each once. */
  readonly #problems = new Map<string, Diagnostic>();
  #closed: Promise<void> | undefined;

  constructor(options: ResolvedHostOptions) {
    const { log } = options;
    this.#options = options;
    this.#events = new Emitter((error, type) => log.error("A listener of the host failed.", { type, error }));
    this.#loader = createModuleLoader({
      hostModules: { skillhost: () => import("skillhost"), "skillhost/testing": () => import("skillhost/testing") },
      guardExit: options.guardExit,
      onDiagnostic: (diagnostic) => this.#report(diagnostic),
    });
    this.#store = new SkillStore({
      loader: this.#loader,
      runners: [createModuleRunner(this.#loader)],
      hostVersion: packageVersion,
      log,
      watch: options.watch,
      watchBackend: options.watchBackend,
      importTimeout: options.importTimeout,
      onEdited: (files) => this.#forgetProblems(files),
    });
    this.#store.onProblem((problem) => this.#report(problem));
    this.#store.onChange((change) => {
      log.info("Skills changed.", change);
      this.#events.emit("skills.changed", change);
    });
    this.#parts = { options, store: this.#store, views: createSkillViews(options, this.#store), memo: createCatalogMemo() };
  }

  get workingDirectory(): string {
    return this.#options.workingDirectory;
  }

  get skills(): readonly SkillInfo[] {
    return describeSkills(this.#resolved, this.#store.snapshot);
  }

  get diagnostics(): readonly Diagnostic[] {
    return [...this.#problems.values(), ...this.#resolved.diagnostics];
  }

  async start(): Promise<void> {
    await this.#store.acquire(this.#options.roots).ready;
    await this.#store.idle();
  }

  on<K extends keyof HostEvents>(type: K, listener: (event: HostEvents[K]) => void): Disposable {
    return this.#events.on(type, listener);
  }

  async createSession(options: SessionOptions = {}): Promise<Session> {
    this.#assertOpen();
    let opened: Session | undefined;
    const environment = createSessionEnvironment(this.#parts, () => opened && this.#sessions.delete(opened));
    const session = createSession(options, environment);
    opened = session;
    this.#sessions.add(session);
    try {
      await session.ready();
      return session;
    } catch (error) {
      await session.disconnect();
      throw error;
    }
  }

  enableSkill(name: string): void {
    this.#parts.views.setDisabled(name, false);
  }

  disableSkill(name: string): void {
    this.#parts.views.setDisabled(name, true);
  }

  async reload(): Promise<void> {
    this.#assertOpen();
    await this.#store.reload();
  }

  explain(name: string): Explanation {
    const engineOf = (file: string) => (moduleExtensions.includes(extname(file)) ? this.#loader.engineOf(file) : undefined);
    return explainName(name, this.#resolved, engineOf);
  }

  async idle(): Promise<void> {
    await this.#store.idle();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #resolved(): ResolvedSkills {
    return this.#parts.views.resolve([], []);
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#sessions].map((session) => session.disconnect()));
    await this.#store[Symbol.asyncDispose]();
    this.#loader[Symbol.dispose]();
    this.#events.clear();
  }

  #report(diagnostic: Diagnostic): void {
    this.#problems.set(formatDiagnostic(diagnostic), diagnostic);
    this.#events.emit("diagnostic", diagnostic);
  }

  /** What was wrong with a file that has changed is reported anew if it still is. */
  #forgetProblems(files: readonly string[]): void {
    for (const [key, { file }] of this.#problems) if (file !== undefined && files.includes(file)) this.#problems.delete(key);
  }

  #assertOpen(): void {
    if (this.#closed) throw new HostError("HOST_CLOSED", "This host is closed. Make another with createHost().");
  }
}

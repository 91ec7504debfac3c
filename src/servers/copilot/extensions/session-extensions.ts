import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorMessage, HostError } from "../../../base/errors.ts";
import { Lifetime } from "../../../base/lifetime.ts";
import { statFile } from "../../../io/module-loader/read-source.ts";
import type { Session } from "../../../session/session.ts";
import { trustRootOf, untrustedFolder } from "../../../trust/folder-trust.ts";
import { readDisabledExtensions } from "./disabled-extensions.ts";
import { type ExtensionHost, type ExtensionProcess, type FoundExtension, launchExtension } from "./extension-process.ts";

/** An extension in the form of the protocol. */
interface ExtensionInfo {
  readonly id: string;
  readonly name: string;
  readonly source: "project" | "user";
  readonly status: "running" | "disabled" | "failed" | "starting";
  readonly pid?: number;
}

interface Entry {
  readonly found: FoundExtension;
  status: ExtensionInfo["status"];
  process: ExtensionProcess | undefined;
  /** Settles when the extension runs, has failed or is disabled. */
  readonly settled: Promise<void>;
  settle(): void;
}

/**
 * The extensions of one session: programs that attach to it as clients, each in its own process. A failing extension affects
 * only its own tools and hooks.
 */
export class SessionExtensions {
  readonly #server: ExtensionHost;
  readonly #session: Session;
  readonly #sdkPath: string | undefined;
  readonly #disabled = new Set<string>();
  #hasUserChoice = false;
  #entries = new Map<string, Entry>();
  #work: Promise<void> = Promise.resolve();
  readonly #life: Lifetime;

  /** `sdkPath`: the folder of the SDK that a client chose. */
  constructor(server: ExtensionHost, session: Session, sdkPath: string | undefined) {
    this.#server = server;
    this.#session = session;
    this.#life = new Lifetime(() => new HostError("SESSION_CLOSED", `Session ${session.id} is closed.`));
    this.#sdkPath = sdkPath;
  }

  /** Starts the extensions in the background. */
  start(): void {
    void this.reload();
  }

  list(): readonly ExtensionInfo[] {
    return Array.from(this.#entries.values(), ({ found: { id, name, source }, status, process }) => ({
      id,
      name,
      source,
      status,
      ...(status === "running" && process !== undefined && { pid: process.pid }),
    }));
  }

  /** Stops all extensions, finds them again, and starts those that are not disabled. Settles when each runs or has failed. */
  reload(): Promise<void> {
    return this.#enqueue(async () => {
      await this.#stopAll();
      if (this.#life.isOver) return;
      const { workingDirectory } = this.#session.config;
      const found = discoverExtensions({ workingDirectory, userDirectory: this.#userDirectory() });
      this.#entries = new Map(found.map((each) => [each.id, this.#launch(each)]));
      this.#emitLoaded();
      await Promise.all([...this.#entries.values()].map(({ settled }) => settled));
    });
  }

  /** @throws HostError `EXTENSION_UNKNOWN`. */
  enable(id: string): Promise<void> {
    return this.#enqueue(async () => {
      this.#life.assertOpen();
      const entry = this.#find(id);
      this.#disabled.delete(id);
      if (entry.status === "running") return;
      const launched = this.#launch(entry.found);
      this.#entries.set(id, launched);
      this.#emitLoaded();
      await launched.settled;
    });
  }

  /** @throws HostError `EXTENSION_UNKNOWN`. */
  async disable(id: string): Promise<void> {
    const entry = this.#find(id);
    this.#disabled.add(id);
    // Not queued: queued work may be waiting for this very extension.
    await stop(entry);
    this.#emitLoaded();
  }

  async close(): Promise<void> {
    const ended = this.#life.end();
    // Not queued: queued work may be waiting for an extension that never joins.
    await this.#stopAll();
    await Promise.all([ended, this.#work]);
  }

  /** Runs work one after the other: two concurrent reloads would start everything twice. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => {});
    return done;
  }

  #launch(found: FoundExtension): Entry {
    const entry = createEntry(found, this.#disabled.has(found.id) ? "disabled" : "starting");
    if (entry.status === "starting") void this.#run(entry);
    return entry;
  }

  async #run(entry: Entry): Promise<void> {
    const { workingDirectory, sessionId } = this.#session.config;
    const { source, file } = entry.found;
    if (source === "project" && !(await this.#server.mayRun(file))) {
      return this.#conclude(entry, "failed", untrustedFolder(trustRootOf(file, workingDirectory)).message);
    }
    const launch = (): Promise<ExtensionProcess | string> =>
      launchExtension(entry.found, {
        server: this.#server,
        sessionId,
        workingDirectory,
        sdkPath: this.#sdkPath,
        onJoined: () => this.#conclude(entry, "running"),
        onFailed: (why) => this.#conclude(entry, "failed", why),
      });
    const launched = await this.#life.open(launch, (late) => typeof late === "string" || late.stop()).catch((error) => errorMessage(error));
    if (typeof launched === "string") return this.#conclude(entry, "failed", launched);
    entry.process = launched;
    // It was disabled while its process was starting.
    if (entry.status === "disabled") await stop(entry);
  }

  #conclude(entry: Entry, status: "running" | "failed", why?: string): void {
    if (entry.status === "disabled") return;
    entry.status = status;
    if (status === "failed") entry.process = undefined;
    if (why !== undefined) {
      const message = `Extension "${entry.found.id}" failed: ${why}`;
      this.#server.log.warning(message);
      this.#session.events.append("session.warning", { warningType: "extension", message });
    }
    this.#emitLoaded();
    entry.settle();
  }

  async #stopAll(): Promise<void> {
    await Promise.all(Array.from(this.#entries.values(), stop));
  }

  /** Undefined: there is none, or it is unknown which of its extensions the user has disabled. */
  #userDirectory(): string | undefined {
    const { extensionsDirectory } = this.#server.options;
    // Later choices are for later sessions.
    if (this.#hasUserChoice) return extensionsDirectory;
    try {
      for (const id of readDisabledExtensions(extensionsDirectory)) this.#disabled.add(id);
      this.#hasUserChoice = true;
      return extensionsDirectory;
    } catch (error) {
      const message = `The user's extensions were not started. ${errorMessage(error)}`;
      this.#server.log.warning(message);
      if (this.#session.isOpen) this.#session.events.append("session.warning", { warningType: "extension", message });
      return undefined;
    }
  }

  #find(id: string): Entry {
    const entry = this.#entries.get(id);
    if (entry !== undefined) return entry;
    const known = [...this.#entries.keys()].join(", ");
    const advice = known === "" ? "This session has no extensions." : `Its extensions are ${known}.`;
    throw new HostError("EXTENSION_UNKNOWN", `Extension not found: ${id}. ${advice}`);
  }

  #emitLoaded(): void {
    const session = this.#session;
    if (!session.isOpen) return;
    const extensions = this.list().map(({ id, name, source, status }) => ({ id, name, source, status }));
    session.events.append("session.extensions_loaded", { extensions });
  }
}

function createEntry(found: FoundExtension, status: Entry["status"]): Entry {
  let settle = (): void => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  if (status !== "starting") settle();
  return { found, status, process: undefined, settled, settle };
}

/** Stops an extension. It counts as disabled, not as failed. */
async function stop(entry: Entry): Promise<void> {
  const { process } = entry;
  entry.status = "disabled";
  entry.process = undefined;
  await process?.stop();
  entry.settle();
}

interface ExtensionPlaces {
  readonly workingDirectory: string;
  /** The folder of the user's extensions. */
  readonly userDirectory: string | undefined;
}

/**
 * Finds the extensions of a project, in `.github/extensions` at the top of its git checkout, and those of the user. When both
 * have one with the same name, the project's is used.
 * @internal
 */
export function discoverExtensions({ workingDirectory, userDirectory }: ExtensionPlaces): readonly FoundExtension[] {
  const ofProject = findIn(join(topOf(workingDirectory), ".github", "extensions"), "project");
  const ofUser = discoverUserExtensions(userDirectory);
  const taken = new Set(ofProject.map(({ name }) => name));
  return [...ofProject, ...ofUser.filter(({ name }) => !taken.has(name))];
}

/** Finds the extensions of the user. */
export function discoverUserExtensions(userDirectory: string | undefined): readonly FoundExtension[] {
  return userDirectory === undefined ? [] : findIn(userDirectory, "user");
}

function findIn(folder: string, source: FoundExtension["source"]): readonly FoundExtension[] {
  return namesIn(folder).flatMap((name) => {
    const file = join(folder, name, "extension.mjs");
    return statFile(file)?.isFile() === true ? [{ id: `${source}:${name}`, name, source, file }] : [];
  });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // The folder does not exist.
    return [];
  }
}

/** The folder that holds the checkout; without one, the working directory itself. */
function topOf(workingDirectory: string): string {
  for (let folder = workingDirectory; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return workingDirectory;
  }
}

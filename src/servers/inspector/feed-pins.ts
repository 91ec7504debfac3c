import { dirname, join } from "node:path";
import { type Diagnostic, formatDiagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { toCallCommand, toCallTest, toCurlCommand, toPowerShellCommand } from "../../formats/calls/export-call.ts";
import { callsFileName, type StoredCall } from "../../formats/calls/stored-calls.ts";
import type { Host, SkillInfo } from "../../host/host.ts";
import { findCallPlace } from "../../host/stored-calls/call-place.ts";
import { type CallFile, removeStoredCall, saveStoredCall } from "../../host/stored-calls/edit-call-file.ts";
import { readSkillCalls, type SkillCall, skillCallId } from "../../host/stored-calls/skill-calls.ts";
import { type StoredCallRun, StoredCallRunner } from "../../host/stored-calls/stored-call-runner.ts";
import { type TreeWatcher, watchTree } from "../../io/watch/watch-tree.ts";
import type { Session } from "../../session/session.ts";
import { redactSecrets } from "./blob-store.ts";
import { toFeedResult } from "./feed-calls.ts";
import { redacted, toFeedRecord } from "./feed-json.ts";
import type { FeedPin, FeedPinRun, FeedRequests } from "./feed-messages.ts";
import type { WatchedHost } from "./watched-host.ts";

/** Files that do not exist yet are watched for this many skills. Those of others are seen with the next load of their skill. */
const maxWatched = 200;

interface ReadSkill {
  readonly folder: string;
  readonly calls: readonly SkillCall[];
  readonly diagnostics: readonly Diagnostic[];
}

interface FeedPinsOptions {
  /** Stored calls are shown, but not made. */
  readonly isReadOnly: boolean;
  /** The inspector's own session. */
  session(): Promise<Session>;
}

/** The stored calls of a host's skills, made again after each load that changes their tools. */
export class FeedPins implements AsyncDisposable {
  readonly #host: Host;
  readonly #watched: WatchedHost;
  readonly #options: FeedPinsOptions;
  readonly #stop = new AbortController();
  readonly #lastRuns = new Map<string, FeedPinRun>();
  /** Those with stored calls, or with a file that is wrong, by folder. Undefined: no reader has come so far. */
  #skills: Map<string, ReadSkill> | undefined;
  #watcher: TreeWatcher | undefined;
  readonly #watchedFiles = new Set<string>();
  #runner: { readonly session: Session; readonly runner: StoredCallRunner } | undefined;
  #running: Promise<void> = Promise.resolve();
  #failure: string | undefined;
  /** What was announced last, without the runs. */
  #announced = '[[],""]';

  constructor(host: Host, watched: WatchedHost, options: FeedPinsOptions) {
    this.#host = host;
    this.#watched = watched;
    this.#options = options;
    watched.onReload(({ added, updated, removed }) => {
      if (this.#skills === undefined) return;
      this.#readAgain([...added, ...updated, ...removed].map(({ folder }) => folder));
    });
  }

  /** Reads and makes the stored calls, as the first reader comes: nothing is called in a program that is not inspected. */
  begin(): void {
    if (this.#skills !== undefined || this.#stop.signal.aborted) return;
    this.#skills = new Map();
    this.#readAgain(
      this.#host.skills.map(({ folder }) => folder),
      true,
    );
  }

  /** @throws HostError `INSPECTOR_PARAMS`, `PIN_UNKNOWN`, `PIN_EXISTS`, `PIN_PLACE`, and as `saveStoredCall` */
  async save({ id, name, tool, arguments: args, isAutomatic, expect }: SavedPin): Promise<{ readonly pinId: string }> {
    this.begin();
    const former = id === undefined ? undefined : this.#entry(id);
    const formerFolder = former && this.#folderOf(former);
    const { skill, folder, tool: ownName } = this.#placeOf(tool, former);
    const pinId = skillCallId({ skill, call: { name } });
    if (pinId !== id && this.#find(pinId) !== undefined) {
      throw new HostError(
        "PIN_EXISTS",
        `Skill "${skill}" has a stored call with the name ${JSON.stringify(name)} already. Choose another name.`,
      );
    }
    const call: StoredCall = {
      name,
      tool: ownName,
      arguments: restored(args, former?.call.arguments, "arguments") as Json,
      isAutomatic,
      ...(expect !== undefined && { expect: restored(expect, former?.call.expect, "expect") as Json }),
    };
    const { signal } = this.#stop;
    await saveStoredCall(fileIn(folder), call, { signal });
    if (formerFolder !== undefined && pinId !== id) await removeStoredCall(fileIn(formerFolder), former!.call.name, { signal });
    this.#readAgain(formerFolder === undefined ? [folder] : [folder, formerFolder]);
    // A later change of the file by others is seen.
    await this.#watcher?.ready;
    return { pinId };
  }

  /** @throws HostError `PIN_UNKNOWN`, and as `saveStoredCall` */
  async remove(pinId: string): Promise<void> {
    this.begin();
    const entry = this.#entry(pinId);
    const folder = this.#folderOf(entry);
    await removeStoredCall(fileIn(folder), entry.call.name, { signal: this.#stop.signal });
    this.#readAgain([folder]);
  }

  /** Makes a stored call because a person wants it. @throws HostError `PIN_UNKNOWN` */
  async run(pinId: string): Promise<FeedPinRun> {
    this.begin();
    const runner = await this.#currentRunner();
    return this.#show(await runner.run(this.#entry(pinId), this.#stop.signal), undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new DOMException("The inspector was closed.", "AbortError"));
    await this.#watcher?.[Symbol.asyncDispose]();
    await this.#running;
  }

  /** Reads the calls of these skill folders, and makes those that changed or whose tools did. */
  #readAgain(folders: readonly string[], isFirst = false): void {
    if (this.#stop.signal.aborted) return;
    // Once for all: the list is made for each access.
    const skills = new Map(this.#host.skills.map((skill) => [skill.folder, skill]));
    for (const folder of folders) this.#read(folder, skills.get(folder));
    this.#announce(isFirst);
    this.#runChanged();
  }

  #read(folder: string, skill: SkillInfo | undefined): void {
    const isOwn = skill !== undefined && skill.state === "active" && skill.package === undefined;
    const read = isOwn ? readSkillCalls(skill) : { calls: [], diagnostics: [] };
    const { diagnostics } = read;
    const file = join(folder, callsFileName);
    // While a file cannot be read, as during an edit, the calls that it had stay.
    const isBroken = read.calls.length === 0 && diagnostics.some(({ severity }) => severity === "error");
    const calls = isBroken ? (this.#skills?.get(folder)?.calls ?? []) : read.calls;
    const isUsed = calls.length + diagnostics.length > 0;
    if (isUsed) this.#skills?.set(folder, { folder, calls, diagnostics });
    else this.#skills?.delete(folder);
    if (isUsed || (isOwn && this.#watchedFiles.size < maxWatched)) this.#watch(file);
    else if (this.#watchedFiles.delete(file)) this.#watcher?.remove(file);
  }

  /** A host does not report changes of these files, since they are not code of the skill. */
  #watch(file: string): void {
    this.#watcher ??= watchTree({
      roots: [],
      onChange: (changes) => this.#readAgain([...new Set(changes.map(({ path }) => dirname(path)))]),
      onProblem: (problem) => this.#failed(formatDiagnostic(problem)),
    });
    this.#watchedFiles.add(file);
    this.#watcher.add(file);
  }

  #runChanged(): void {
    if (this.#options.isReadOnly || this.#stop.signal.aborted) return;
    const reloadId = this.#watched.lastReload;
    const before = this.#running;
    const run = this.#makeChanged(reloadId).then(
      () => this.#failed(undefined),
      (error: unknown) => this.#failed(`The stored calls were not made: ${errorMessage(error)}`),
    );
    this.#running = Promise.all([before, run]).then(() => {});
  }

  #failed(failure: string | undefined): void {
    if (this.#stop.signal.aborted || failure === this.#failure) return;
    this.#failure = failure;
    this.#announce();
  }

  async #makeChanged(reloadId: number | undefined): Promise<void> {
    if (this.#entries().length === 0) return;
    const runner = await this.#currentRunner();
    // Those of now: there may be another load meanwhile.
    await runner.runChanged(this.#entries(), this.#stop.signal, (run) => void this.#show(run, reloadId));
  }

  /** A session that was closed takes what its runner remembers with it. */
  async #currentRunner(): Promise<StoredCallRunner> {
    const session = await this.#options.session();
    if (this.#runner?.session !== session) this.#runner = { session, runner: new StoredCallRunner(session) };
    return this.#runner.runner;
  }

  #show(run: StoredCallRun, reloadId: number | undefined): FeedPinRun {
    const shown: FeedPinRun = {
      at: Date.now(),
      durationMs: run.durationMs,
      ...(run.result && { result: toFeedResult(run.result, this.#watched) }),
      outcome: run.outcome,
      reasons: run.reasons.map(redactSecrets),
      diff: run.diff.map(redactSecrets),
      schemaDiff: run.schemaDiff.map(redactSecrets),
      isSignatureChanged: run.isSignatureChanged,
      ...(run.previousDurationMs !== undefined && { previousDurationMs: run.previousDurationMs }),
      ...(reloadId !== undefined && { reloadId }),
    };
    const id = skillCallId(run);
    // It may have been removed while it ran.
    if (this.#find(id) !== undefined) {
      this.#lastRuns.set(id, shown);
      this.#watched.showPinRun(id, shown);
    }
    return shown;
  }

  #announce(isFirst = false): void {
    const pins = this.#entries().map((entry): FeedPin => this.#describe(entry));
    const ids = new Set(pins.map(({ id }) => id));
    for (const id of this.#lastRuns.keys()) if (!ids.has(id)) this.#lastRuns.delete(id);
    const problems = [...(this.#skills?.values() ?? [])].flatMap(({ diagnostics }) => diagnostics.map(formatDiagnostic));
    const problem = [...problems, ...(this.#failure === undefined ? [] : [this.#failure])].map(redactSecrets).join("\n");
    const text = JSON.stringify([pins, problem]);
    if (text === this.#announced) return;
    this.#announced = text;
    const shown = pins.map((pin): FeedPin => {
      const lastRun = this.#lastRuns.get(pin.id);
      return lastRun === undefined ? pin : { ...pin, lastRun };
    });
    this.#watched.showPins(shown, problem === "" ? undefined : problem, isFirst);
  }

  #describe(entry: SkillCall): FeedPin {
    const { skill, call } = entry;
    const { name, tool, isAutomatic, arguments: args, expect } = call;
    const { blobs } = this.#watched;
    return {
      id: skillCallId(entry),
      name,
      skill,
      tool,
      arguments: toFeedRecord(args, blobs),
      isAutomatic,
      file: fileIn(this.#folderOf(entry)).path,
      ...(expect && { expect: toFeedRecord(expect, blobs) }),
    };
  }

  #entries(): readonly SkillCall[] {
    return [...(this.#skills?.values() ?? [])].flatMap(({ calls }) => calls);
  }

  #find(pinId: string): SkillCall | undefined {
    return this.#entries().find((entry) => skillCallId(entry) === pinId);
  }

  #entry(pinId: string): SkillCall {
    const entry = this.#find(pinId);
    if (entry === undefined) throw new HostError("PIN_UNKNOWN", `There is no stored call ${JSON.stringify(pinId)}.`);
    return entry;
  }

  #folderOf({ skill }: SkillCall): string {
    return [...this.#skills!.values()].find(({ calls }) => calls[0]?.skill === skill)!.folder;
  }

  /** A tool by its id or name; that of a stored call also by its name in the file. */
  #placeOf(wanted: string, former: SkillCall | undefined): { readonly skill: string; readonly folder: string; readonly tool: string } {
    if (former !== undefined && wanted === former.call.tool) return { skill: former.skill, folder: this.#folderOf(former), tool: wanted };
    const tool = this.#watched.catalog.find(wanted);
    if (tool === undefined) throw new HostError("TOOL_UNKNOWN", `There is no tool ${JSON.stringify(wanted)}. Nothing was stored.`);
    const place = findCallPlace(this.#host, tool);
    if ("fault" in place) throw new HostError("PIN_PLACE", `${place.fault} Nothing was stored.`);
    return { skill: place.skill.name, folder: place.skill.folder, tool: tool.nativeName ?? tool.name };
  }
}

/** What a reader stores. */
type SavedPin = FeedRequests["pin.save"]["params"]["pin"];

function fileIn(folder: string): CallFile {
  return { path: join(folder, callsFileName), inside: folder };
}

/**
 * What a reader sends back of a call that it was shown: secrets and long texts, which it was not shown, are those of the file.
 * @throws HostError `INSPECTOR_PARAMS` for others, which are not known
 */
function restored(given: unknown, stored: unknown, path: string): unknown {
  const isHidden = given === redacted || (isRecord(given) && Object.hasOwn(given, "$blob"));
  if (isHidden && stored !== undefined) return stored;
  if (isHidden)
    throw new HostError(
      "INSPECTOR_PARAMS",
      `${path} is not the real value, which the inspector does not show. Enter it. Nothing was stored.`,
    );
  if (Array.isArray(given))
    return given.map((each, index) => restored(each, Array.isArray(stored) ? stored[index] : undefined, `${path}[${index}]`));
  if (!isRecord(given)) return given;
  const own = isRecord(stored) ? stored : {};
  // Not by assignment: "__proto__" is a key like any other.
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [key, restored(value, Object.hasOwn(own, key) ? own[key] : undefined, `${path}.${key}`)]),
  );
}

/** A call for other programs. @param url the request door of the inspector */
export function exportCall(
  wanted: string,
  args: Json,
  { watched, url }: { readonly watched: WatchedHost; readonly url: string },
): FeedRequests["exportCall"]["result"] {
  const tool = watched.catalog.find(wanted);
  if (tool === undefined) throw new HostError("TOOL_UNKNOWN", `There is no tool ${JSON.stringify(wanted)}.`);
  const name = tool.renamedTo ?? tool.name;
  return {
    command: toCallCommand(name, args),
    powershell: toPowerShellCommand(name, args),
    curl: toCurlCommand(url, name, args),
    ...(tool.kind === "skill" && { test: toCallTest(tool.nativeName ?? tool.name, args) }),
  };
}

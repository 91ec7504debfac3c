import { randomUUID } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import type { SessionEvents } from "../history/events.ts";
import type { PlanStorage } from "../tools/plan-mode.ts";
import { noFile, type WorkspaceFileStat, type WorkspaceFiles } from "./workspace-files.ts";
import type { WorkspaceMetadata } from "./workspace-metadata.ts";

/** A stored summary of a conversation. */
export interface Checkpoint {
  /** The oldest has number 1. */
  readonly number: number;
  readonly title: string;
  /** Its file in the folder `checkpoints`. */
  readonly filename: string;
}

/** A text that was saved as a file, so that a message can refer to it. */
export interface SavedPaste {
  readonly filePath: string;
  readonly filename: string;
  readonly sizeBytes: number;
}

const metadataFile = "workspace.yaml";
const objectiveFile = "autopilot-objective.md";
const indexFile = "index.md";

/**
 * The files of a session itself, which are deleted with it: its plan, the files that clients and tools keep with it, summaries of
 * its conversation, and facts about it.
 */
export class SessionWorkspace {
  readonly plan: PlanStorage;
  readonly #own: WorkspaceFiles;
  readonly #files: WorkspaceFiles;
  readonly #checkpoints: WorkspaceFiles;
  readonly #emit: SessionEvents["append"] | undefined;
  /** Changes run one after another, since each reads a file before it writes it. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(files: WorkspaceFiles, events?: SessionEvents) {
    this.#own = files;
    this.#files = files.below("files");
    this.#checkpoints = files.below("checkpoints");
    this.#emit = events?.append.bind(events);
    this.plan = { read: () => files.read("plan.md"), write: (content) => files.write("plan.md", content) };
  }

  get path(): string {
    return this.#own.root;
  }

  get planPath(): string {
    return this.#own.pathOf("plan.md");
  }

  /** False: there was no plan. */
  deletePlan(): Promise<boolean> {
    return this.#own.remove("plan.md");
  }

  /** The sorted paths of the files, with "/" between their parts. */
  listFiles(): Promise<readonly string[]> {
    return this.#files.list();
  }

  /** @throws HostError `WORKSPACE_FILE`. */
  async readFile(path: string): Promise<string> {
    const content = await this.#files.read(path);
    if (content === undefined) throw noFile(path);
    return content;
  }

  /** Creates or replaces a file. @throws HostError `WORKSPACE_FILE`. */
  async createFile(path: string, content: string): Promise<void> {
    const isNew = await this.#files.write(path, content);
    this.#emit?.("session.workspace_file_changed", { path, operation: isNew ? "create" : "update" });
  }

  /** @throws HostError `WORKSPACE_FILE`, for a folder whose parent does not exist without `recursive`. */
  async createDirectory(path: string, recursive = false): Promise<void> {
    const parent = path.split(/[\\/]/).slice(0, -1).join("/");
    if (!recursive && parent !== "" && (await this.#files.stat(parent))?.isDirectory !== true) throw noFile(parent);
    await this.#files.makeFolder(path);
  }

  /** @throws HostError `WORKSPACE_FILE`: there is nothing, unless `force` is set, or a folder is not empty, unless `recursive` is. */
  async removePath(path: string, { recursive = false, force = false }: { recursive?: boolean; force?: boolean } = {}): Promise<void> {
    if (!(await this.#files.remove(path, recursive)) && !force) throw noFile(path);
  }

  /** @throws HostError `WORKSPACE_FILE` when the source does not exist or the destination does. */
  renamePath(from: string, to: string): Promise<void> {
    return this.#files.rename(from, to);
  }

  /** @throws HostError `WORKSPACE_FILE`. */
  async statFile(path: string): Promise<WorkspaceFileStat> {
    const found = await this.#files.stat(path);
    if (found === undefined) throw noFile(path);
    return found;
  }

  /** Saves a text that is too long for a message. @throws HostError `WORKSPACE_FILE`. */
  async saveLargePaste(content: string): Promise<SavedPaste> {
    const filename = `paste-${randomUUID()}.txt`;
    await this.createFile(filename, content);
    return { filePath: this.#files.pathOf(filename), filename, sizeBytes: Buffer.byteLength(content) };
  }

  /** The summaries, the oldest first, also those whose file is gone. */
  async listCheckpoints(): Promise<readonly Checkpoint[]> {
    return readIndex((await this.#checkpoints.read(indexFile)) ?? "");
  }

  /** The text of a summary. Undefined: there is none with this number, or its file is gone. */
  async readCheckpoint(number: number): Promise<string | undefined> {
    const known = (await this.listCheckpoints()).find((checkpoint) => checkpoint.number === number);
    return known && this.#checkpoints.read(known.filename);
  }

  /** Adds a summary after the others. Returns it with the absolute path of its file. @throws HostError `WORKSPACE_FILE`. */
  addCheckpoint(title: string, content: string): Promise<Checkpoint & { readonly path: string }> {
    return this.#alone(async () => {
      const all = await this.listCheckpoints();
      const number = (all.at(-1)?.number ?? 0) + 1;
      const line = title.replaceAll(/\s+/g, " ").trim().slice(0, maxTitle) || `Checkpoint ${number}`;
      const filename = `${String(number).padStart(3, "0")}-${slugOf(line)}.md`;
      const added = { number, title: line, filename };
      // The file first: an index never names a file that was not written.
      await this.#checkpoints.write(filename, content);
      await this.#checkpoints.write(indexFile, toIndex([...all, added]));
      return { ...added, path: this.#checkpoints.pathOf(filename) };
    });
  }

  /** Removes the newest summaries until `keepCount` are left: those before a point to which the session goes back. */
  truncateCheckpoints(keepCount: number): Promise<number> {
    return this.#alone(async () => {
      const all = await this.listCheckpoints();
      const removed = all.slice(keepCount);
      if (removed.length === 0) return 0;
      await this.#checkpoints.write(indexFile, toIndex(all.slice(0, keepCount)));
      for (const { filename } of removed) await this.#checkpoints.remove(filename);
      return removed.length;
    });
  }

  /** Facts about the workspace. A file that is damaged counts as empty. */
  async readMetadata(): Promise<WorkspaceMetadata> {
    const text = await this.#own.read(metadataFile);
    return text === undefined ? {} : (await import("./workspace-metadata.ts")).parseMetadata(text);
  }

  /** Changes facts about the workspace, and creates its folder if it does not exist. */
  updateMetadata(change: Readonly<Record<string, string | number | boolean | undefined>>): Promise<WorkspaceMetadata> {
    return this.#alone(async () => {
      const { toYaml } = await import("./workspace-metadata.ts");
      const now = new Date().toISOString();
      const merged: Record<string, string | number | boolean | undefined> = {
        created_at: now,
        ...(await this.readMetadata()),
        ...change,
        updated_at: now,
      };
      const known = Object.entries(merged).filter((field): field is [string, string | number | boolean] => field[1] !== undefined);
      const metadata = Object.fromEntries(known);
      await this.#own.write(metadataFile, toYaml(metadata));
      return metadata;
    });
  }

  /** What an autopilot is to achieve. Undefined: nothing is set. */
  readAutopilotObjective(): Promise<string | undefined> {
    return this.#own.read(objectiveFile);
  }

  /** True: none was set before. */
  writeAutopilotObjective(content: string): Promise<boolean> {
    return this.#own.write(objectiveFile, content);
  }

  /** False: none was set. */
  deleteAutopilotObjective(): Promise<boolean> {
    return this.#own.remove(objectiveFile);
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done.catch(() => {});
    return done;
  }
}

const maxTitle = 200;
const heading = `# Checkpoint History

Checkpoints are listed in chronological order. Checkpoint 1 is the oldest, higher numbers are more recent.

| # | Title | File |
|---|-------|------|
`;

function toIndex(checkpoints: readonly Checkpoint[]): string {
  const rows = checkpoints.map(({ number, title, filename }) => `| ${number} | ${title.replaceAll("|", "\\|")} | ${filename} |\n`);
  return heading + rows.join("");
}

/** Reads the rows of an index, which people and programs may have edited. What is not a row is ignored. */
function readIndex(text: string): readonly Checkpoint[] {
  const rows = text.split("\n").flatMap((line): Checkpoint[] => {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const [, number = "", title = "", filename = ""] = cells;
    if (!/^\d{1,9}$/.test(number) || !/^[\w-][\w.-]{0,200}$/.test(filename)) return [];
    return [{ number: Number(number), title: title.replaceAll("\\|", "|"), filename }];
  });
  const byNumber = new Map(rows.map((row) => [row.number, row]));
  return [...byNumber.values()].sort((a, b) => a.number - b.number);
}

function slugOf(title: string): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.join("-").slice(0, 50).replace(/-$/, "") || "summary";
}

/** @throws HostError `WORKSPACE_FILE`. */
export function readKeepCount(value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new HostError("WORKSPACE_FILE", "keepCount must be the number of summaries to keep.");
}

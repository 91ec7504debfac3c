import { HostError } from "../../../base/errors.ts";
import type { SessionWorkspace } from "../sessions/workspace.ts";
import type { ClientFiles } from "./client-files.ts";

const deepest = 20;

/** A session's own files in the file system of its client. */
export class ClientWorkspace implements SessionWorkspace {
  readonly #files: ClientFiles;

  constructor(files: ClientFiles) {
    this.#files = files;
  }

  get path(): string {
    return this.#files.statePath;
  }

  get planPath(): string {
    return this.#files.path("plan.md");
  }

  readPlan(): Promise<string | undefined> {
    return this.#files.read(this.planPath);
  }

  writePlan(content: string): Promise<boolean> {
    return this.#write(this.planPath, content);
  }

  async deletePlan(): Promise<boolean> {
    const wasThere = await this.#files.exists(this.planPath);
    if (wasThere) await this.#files.remove(this.planPath);
    return wasThere;
  }

  async list(): Promise<readonly string[]> {
    return (await this.#listIn([])).sort();
  }

  async read(path: string): Promise<string> {
    const content = await this.#files.read(this.#resolve(path));
    if (content !== undefined) return content;
    throw new HostError("WORKSPACE_FILE", `There is no file ${JSON.stringify(path)} in the workspace.`);
  }

  async write(path: string, content: string): Promise<boolean> {
    const parts = partsOf(path);
    await this.#files.makeFolder(this.#files.path("files", ...parts.slice(0, -1)));
    return this.#write(this.#resolve(path), content);
  }

  async #listIn(parts: readonly string[]): Promise<string[]> {
    if (parts.length > deepest) return [];
    const found: string[] = [];
    for (const { name, isFolder } of await this.#files.entries(this.#files.path("files", ...parts))) {
      if (isFolder) found.push(...(await this.#listIn([...parts, name])));
      else found.push([...parts, name].join("/"));
    }
    return found;
  }

  async #write(path: string, content: string): Promise<boolean> {
    const isNew = !(await this.#files.exists(path));
    if (isNew) await this.#files.makeFolder(this.#files.statePath);
    await this.#files.write(path, content);
    return isNew;
  }

  #resolve(path: string): string {
    return this.#files.path("files", ...partsOf(path));
  }
}

/** The client knows its file system; what leads out of the workspace does not get there. */
function partsOf(path: string): readonly string[] {
  const parts = path.split(/[\\/]/).filter((part) => part !== "" && part !== ".");
  const isAbsolute = /^(?:[\\/]|[A-Za-z]:)/.test(path);
  if (!isAbsolute && parts.length > 0 && !parts.includes("..") && !path.includes("\0")) return parts;
  throw new HostError("WORKSPACE_FILE", `${JSON.stringify(path.slice(0, 200))} is not a path inside the workspace.`);
}

import { HostError } from "../../../base/errors.ts";
import { isPlainRecord } from "../../../base/read-fields.ts";
import type { Client } from "./client.ts";

/** Where a client keeps the state of its sessions: in a file system of its own, which only it can reach. */
export interface ClientFileSystem {
  /** The folder of a session's state, in each session's own file system. */
  readonly statePath: string;
  readonly initialDirectory: string;
}

/** A client's error for what is not there. */
const missingCode = "ENOENT";

/** The files of one session at its client. The client may be another one after a reconnection. */
export class ClientFiles {
  readonly statePath: string;
  readonly #sessionId: string;
  client: Client;

  constructor(client: Client, sessionId: string, { statePath }: ClientFileSystem) {
    this.client = client;
    this.#sessionId = sessionId;
    this.statePath = statePath;
  }

  /** A path within the state, however the client writes paths. */
  path(...parts: readonly string[]): string {
    const separator = this.statePath.includes("\\") && !this.statePath.includes("/") ? "\\" : "/";
    return [this.statePath.replace(/[\\/]+$/, ""), ...parts].join(separator);
  }

  /** Undefined: there is no such file. @throws HostError `SESSION_FS`. */
  async read(path: string): Promise<string | undefined> {
    const answer = await this.#ask("readFile", { path });
    if (codeOf(answer["error"]) === missingCode) return undefined;
    this.#refuse(answer["error"], path);
    return typeof answer["content"] === "string" ? answer["content"] : "";
  }

  async write(path: string, content: string): Promise<void> {
    this.#refuse(await this.#ask("writeFile", { path, content }), path);
  }

  async append(path: string, content: string): Promise<void> {
    this.#refuse(await this.#ask("appendFile", { path, content }), path);
  }

  async makeFolder(path: string): Promise<void> {
    this.#refuse(await this.#ask("mkdir", { path, recursive: true }), path);
  }

  async remove(path: string): Promise<void> {
    this.#refuse(await this.#ask("rm", { path, recursive: true, force: true }), path);
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#ask("exists", { path }))["exists"] === true;
  }

  /** The entries of a folder; none when it is not there. */
  async entries(path: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]> {
    const answer = await this.#ask("readdirWithTypes", { path });
    if (codeOf(answer["error"]) === missingCode) return [];
    this.#refuse(answer["error"], path);
    const entries = Array.isArray(answer["entries"]) ? answer["entries"].filter(isPlainRecord) : [];
    return entries.flatMap(({ name, type }) => (typeof name === "string" ? [{ name, isFolder: type === "directory" }] : []));
  }

  async #ask(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.client.wire.request(`sessionFs.${method}`, { sessionId: this.#sessionId, ...params });
    return isPlainRecord(answer) ? answer : {};
  }

  /** What clients answer to writes is nothing, or what went wrong. */
  #refuse(error: unknown, path: string): void {
    const code = codeOf(error);
    if (code === undefined) return;
    const message = isPlainRecord(error) && typeof error["message"] === "string" ? error["message"] : code;
    throw new HostError("SESSION_FS", `The client's file system refused ${path}: ${message}`);
  }
}

function codeOf(error: unknown): string | undefined {
  const code = isPlainRecord(error) ? error["code"] : undefined;
  return typeof code === "string" ? code : undefined;
}

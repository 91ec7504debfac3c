import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { errorMessage, HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import { writeFileAtomic } from "../../../io/atomic-write.ts";

type Servers = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The MCP servers that a user configured through a client. Every later session has them. */
export class McpConfigFile {
  readonly #file: string;
  #servers: Servers = {};
  #disabled: ReadonlySet<string> = new Set();
  #writing: Promise<void> = Promise.resolve();

  /** @throws HostError `MCP_CONFIG` when the file exists and cannot be read. */
  constructor(file: string) {
    this.#file = file;
    this.#read();
  }

  list(): Servers {
    return this.#servers;
  }

  /** The servers that are not disabled. */
  get enabled(): Servers {
    return Object.fromEntries(Object.entries(this.#servers).filter(([name]) => !this.#disabled.has(name)));
  }

  add(name: string, config: Readonly<Record<string, unknown>>): Promise<void> {
    if (Object.hasOwn(this.#servers, name))
      throw new HostError("MCP_CONFIG", `MCP server ${JSON.stringify(name)} is already configured. Update it instead.`);
    return this.#replace({ ...this.#servers, [name]: config });
  }

  update(name: string, config: Readonly<Record<string, unknown>>): Promise<void> {
    this.#assertKnown(name);
    return this.#replace({ ...this.#servers, [name]: config });
  }

  remove(name: string): Promise<void> {
    this.#assertKnown(name);
    return this.#replace(Object.fromEntries(Object.entries(this.#servers).filter(([other]) => other !== name)));
  }

  setDisabled(names: readonly string[], isDisabled: boolean): Promise<void> {
    const others = [...this.#disabled].filter((name) => !names.includes(name));
    this.#disabled = new Set(isDisabled ? [...others, ...names] : others);
    return this.#replace(this.#servers);
  }

  async reload(): Promise<void> {
    await this.#writing;
    this.#read();
  }

  #assertKnown(name: string): void {
    if (!Object.hasOwn(this.#servers, name)) throw new HostError("MCP_CONFIG", `MCP server ${JSON.stringify(name)} is not configured.`);
  }

  #replace(servers: Servers): Promise<void> {
    this.#servers = servers;
    const text = `${JSON.stringify({ mcpServers: servers, disabledMcpServers: [...this.#disabled] }, null, 2)}\n`;
    const write = async (): Promise<void> => {
      await mkdir(dirname(this.#file), { recursive: true });
      // Configurations may hold credentials.
      await writeFileAtomic(this.#file, text, { mode: 0o600 });
    };
    const written = this.#writing.then(write);
    // The caller gets the error; it must not fail the next write.
    this.#writing = written.catch(() => {});
    return written;
  }

  #read(): void {
    const { mcpServers, disabledMcpServers } = readJson(this.#file);
    this.#servers = isRecord(mcpServers) ? Object.fromEntries(Object.entries(mcpServers).filter(isServer)) : {};
    this.#disabled = new Set(Array.isArray(disabledMcpServers) ? disabledMcpServers.map(String) : []);
  }
}

function isServer(entry: [string, unknown]): entry is [string, Readonly<Record<string, unknown>>] {
  return isRecord(entry[1]);
}

function readJson(file: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    return isRecord(value) ? value : {};
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new HostError("MCP_CONFIG", `${file} cannot be read (${errorMessage(error)}). Fix it or delete it.`, { cause: error });
  }
}

import { existsSync } from "node:fs";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import type { GatheredServer } from "../check-server.ts";
import type { CommandContext } from "../command-context.ts";
import { isOwnEntry, startsOwnProgram } from "./client-entry.ts";
import { entriesOf, readClientFile } from "./client-file.ts";
import { clientPlaces, mcpClients } from "./mcp-clients.ts";

export interface ConnectedClients {
  /** The entries that start skillhost, as servers to be checked. */
  readonly servers: readonly GatheredServer[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Finds the entries of clients, of this project and this user, that serve skills. Nothing is started. */
export function findConnectedClients(context: CommandContext): ConnectedClients {
  const places = clientPlaces(context);
  const servers: GatheredServer[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const client of mcpClients) {
    for (const [scope, file] of [
      ["project", client.project?.(places)],
      ["user", client.user(places)],
    ] as const) {
      if (file === undefined || !existsSync(file)) continue;
      // The file of a project may be of any author, and its arguments name the code to run.
      const mayStart = scope === "user" || context.consent.isTrusted;
      try {
        for (const [name, entry] of Object.entries(entriesOf(readClientFile(file, client.format), client.key))) {
          if (!isOwnEntry(entry)) continue;
          const server = toServer(`${name} (${client.title})`, file, entry as Entry, mayStart);
          servers.push(server);
          if (server.spec === undefined) diagnostics.push(untried(client.title, name, file, mayStart));
        }
      } catch (error) {
        const message = `The configuration of ${client.title} cannot be read: ${errorMessage(error)}`;
        diagnostics.push({ severity: "warning", code: "DOCTOR_CLIENT_FILE", message, file });
      }
    }
  }
  return { servers, diagnostics };
}

interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

function toServer(name: string, file: string, entry: Entry, mayStart: boolean): GatheredServer {
  const origin = { kind: "session", source: "client" } as const;
  const info = { name, file, origin, transport: "stdio", status: "pending", tools: [], held: [], diagnostics: [] } as const;
  if (!mayStart || !startsOwnProgram(entry)) return { info };
  const { command, args, env = {}, cwd } = entry;
  return { info, spec: { name, type: "stdio", command, args, env, cwd, tools: undefined, timeout: undefined, isDisabled: false } };
}

function untried(title: string, name: string, file: string, mayStart: boolean): Diagnostic {
  const why = mayStart ? "it starts another program than this skillhost" : "the project is not trusted";
  const message = `The entry "${name}" of ${title} was not tried, because ${why}.`;
  return { severity: "info", code: "DOCTOR_CLIENT_UNTRIED", message, file };
}

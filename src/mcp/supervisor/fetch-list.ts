import { HostError } from "../../base/errors.ts";
import type { McpConnection } from "../connection/connection.ts";
import { listPages } from "../connection/list-pages.ts";
import type { ListName } from "./server-lists.ts";

type Json = Readonly<Record<string, unknown>>;

const skillsExtension = "io.modelcontextprotocol/skills";

/** All of one list of a server; empty when it offers none. Rejects as the connection's requests do. */
export function fetchList(connection: McpConnection, list: ListName, signal: AbortSignal): Promise<readonly Json[]> {
  switch (list) {
    case "tools":
      return connection.listTools({ signal });
    case "prompts":
      return connection.listPrompts({ signal });
    case "resources":
      return connection.listResources({ signal });
    case "resourceTemplates":
      return connection.listResourceTemplates({ signal });
    case "skills":
      return offersSkills(connection.capabilities) ? listSkills(connection, signal) : Promise.resolve([]);
  }
}

function offersSkills(capabilities: Json): boolean {
  const extensions = Object.hasOwn(capabilities, "extensions") ? capabilities["extensions"] : undefined;
  return typeof extensions === "object" && extensions !== null && Object.hasOwn(extensions, skillsExtension);
}

async function listSkills(connection: McpConnection, signal: AbortSignal): Promise<readonly Json[]> {
  const { items } = await listPages("skills", async (cursor) => {
    const page = await connection.request("skills/list", cursor === undefined ? {} : { cursor }, { signal });
    if (Array.isArray(page["skills"])) return page;
    throw new HostError("MCP_ANSWER", "The answer to skills/list has no list of skills.");
  });
  return items;
}

import { HostError } from "../../base/errors.ts";
import type { McpConnection } from "../connection/connection.ts";
import type { ListName } from "./server-lists.ts";

type Json = Readonly<Record<string, unknown>>;

const skillsExtension = "io.modelcontextprotocol/skills";
/** More pages than any server needs; one that always names a next page must not be read for ever. */
const maxPages = 100;

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
  const skills: Json[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const result = await connection.request("skills/list", cursor === undefined ? {} : { cursor }, { signal });
    if (!Array.isArray(result["skills"])) throw new HostError("MCP_ANSWER", "The answer to skills/list has no list of skills.");
    skills.push(...result["skills"].filter(isObject));
    const next = result["nextCursor"];
    if (typeof next !== "string" || next === cursor) return skills;
    cursor = next;
  }
  return skills;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

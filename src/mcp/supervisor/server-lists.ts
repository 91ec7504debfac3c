import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Json } from "../../base/json.ts";
import type { McpConnection } from "../connection/connection.ts";

export type ListName = "tools" | "prompts" | "resources" | "resourceTemplates" | "skills";

export const listNames: readonly ListName[] = ["tools", "prompts", "resources", "resourceTemplates", "skills"];

/** What a server offers, as it came: entries are only known to be objects. Immutable, replaced as a whole. */
export interface ServerLists extends Readonly<Record<ListName, readonly Json[]>> {
  /** `cache`: from an earlier run; the server has not answered yet. */
  readonly from: "server" | "cache";
  readonly capabilities: Json;
  readonly serverInfo: McpConnection["serverInfo"];
  readonly instructions: string | undefined;
  readonly tools: readonly Json[];
  readonly prompts: readonly Json[];
  readonly resources: readonly Json[];
  readonly resourceTemplates: readonly Json[];
  /** Entries of `skills/list`, of a server with the extension `io.modelcontextprotocol/skills`. */
  readonly skills: readonly Json[];
  /** Lists that could not be fetched; their previous content stays. */
  readonly diagnostics: readonly Diagnostic[];
}

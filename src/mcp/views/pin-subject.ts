import { sha256 } from "../../base/canonical-json.ts";
import type { McpServerSpec } from "../../formats/mcp-server-spec.ts";

/** Something that a model or a policy sees of a server: the whole definition of a tool, its instructions, a skill's entry. */
export interface PinSubject {
  readonly kind: "mcp-tool" | "mcp-instructions" | "mcp-skill";
  /** See `pinServer`. */
  readonly server: string;
  /** The server's own name or address for it. */
  readonly name: string;
  /** `digestOf` the content. */
  readonly digest: string;
  readonly content: unknown;
}

/**
 * Whose definitions they are, whatever else the configuration says: the server's name and how it is reached. Values of
 * the environment and headers are left out: they hold secrets and are renewed, and neither should get into what is kept
 * or make the same server another one.
 */
export function pinServer(spec: McpServerSpec): string {
  const way = spec.type === "stdio" ? [spec.command, spec.args, spec.cwd ?? ""] : [spec.url];
  return `${shortened(spec.name)} ${sha256(JSON.stringify(way)).slice(0, 32)}`;
}

/** What is told apart within a server. */
export function placeOf({ kind, name }: Pick<PinSubject, "kind" | "name">): string {
  return `${kind} ${name}`;
}

/** The id of its approval. */
export function approvalId({ server, name }: PinSubject): string {
  return `${server}/${shortened(name)}`;
}

// A store takes ids of up to 4,096 characters; servers choose names as they like.
function shortened(name: string): string {
  return name.length <= 200 ? name : `${name.slice(0, 160)}…${sha256(name).slice(0, 32)}`;
}

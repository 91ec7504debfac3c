import { sha256 } from "../../base/canonical-json.ts";

/** Something that a model or a policy sees, and that may be another the next time: the whole definition of a tool, say. */
export interface PinSubject {
  /** What sort of thing it is: `mcp-tool`, `mcp-instructions`, `mcp-skill`, `skill-tool`. */
  readonly kind: string;
  /** Whose it is, told apart from whoever else has its name. */
  readonly owner: string;
  /** The owner's own name or address for it. */
  readonly name: string;
  /** `digestOf` the content. */
  readonly digest: string;
  readonly content: unknown;
}

/** What is told apart within an owner. */
export function placeOf({ kind, name }: Pick<PinSubject, "kind" | "name">): string {
  return `${kind} ${name}`;
}

/** The id of its approval. */
export function approvalId({ owner, name }: PinSubject): string {
  return `${owner}/${shortened(name)}`;
}

/** An owner by a name that people know, and by what makes it this one. */
export function ownerId(name: string, way: readonly unknown[]): string {
  return `${shortened(name)} ${sha256(JSON.stringify(way)).slice(0, 32)}`;
}

// A store takes ids of up to 4,096 characters; strangers choose names as they like.
function shortened(name: string): string {
  return name.length <= 200 ? name : `${name.slice(0, 160)}…${sha256(name).slice(0, 32)}`;
}

import { join } from "node:path";
import { packageRoot } from "../../base/package-root.ts";
import type { CheckedTree } from "../../io/read-bounded.ts";

/** A module that exists only in memory. */
export interface Rehearsal {
  readonly file: string;
  readonly tree: CheckedTree;
}

const folder = join(packageRoot, "dist");
const name = "rehearsal.ts";
const text = `import { defineTool } from "skillhost";
interface Given { readonly text: string }
export const rehearsal = defineTool("rehearsal", {
  description: "Answers.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const,
  handler: async ({ text }: Given) => ({ text }),
});
`;

/** A skill of one tool, with which a child runs what loading and calling need, before it has a skill to load. */
export function createRehearsal(): Rehearsal {
  const file = join(folder, name);
  const bytes = Buffer.from(text);
  const tree: CheckedTree = {
    folder,
    files: new Map(),
    relative: (path) => (path === file ? name : undefined),
    kindOf: (path) => (path === file ? "file" : undefined),
    read: () => ({ ok: true, bytes }),
  };
  return { file, tree };
}

import type { FailedChange, SkillChange, SkillsChange } from "./skill.ts";

/** What an attempt to load a folder came to, for those who listen, and the files whose change was the reason for it. */
export type FolderNews = { readonly files: readonly string[] } & (
  | { readonly kind: "added" | "updated" | "removed"; readonly change: SkillChange }
  | { readonly kind: "failed"; readonly change: FailedChange }
  /** The snapshot is another one, and there is nothing to tell. */
  | { readonly kind: "unspoken" }
);

/** One change of all that happened to some folders, in their order; undefined: there is nothing to tell. */
export function toSkillsChange(news: readonly FolderNews[]): SkillsChange | undefined {
  if (news.every(({ kind }) => kind === "unspoken")) return undefined;
  const changes = (wanted: "added" | "updated" | "removed"): SkillChange[] =>
    news.flatMap((item) => (item.kind === wanted ? [item.change] : []));
  return {
    added: changes("added"),
    updated: changes("updated"),
    removed: changes("removed"),
    failed: news.flatMap((item) => (item.kind === "failed" ? [item.change] : [])),
    files: [...new Set(news.flatMap(({ files }) => files))],
  };
}

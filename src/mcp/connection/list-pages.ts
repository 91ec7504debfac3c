import { isRecord, type Json } from "../../base/json.ts";

const mostPages = 1000;
/** Twice as many as are used of any list. */
const mostItems = 20_000;

export interface ListedPages {
  readonly items: readonly Json[];
  /** What was left out, for people; undefined: nothing. */
  readonly fault: string | undefined;
}

/** Reads a list page by page. Stops at a cursor that was there before, and at limits for pages and entries. */
export async function listPages(key: string, fetchPage: (cursor: string | undefined) => Promise<Json>): Promise<ListedPages> {
  const items: Json[] = [];
  const seen = new Set<string>();
  let invalid = 0;
  for (let cursor: string | undefined; ; ) {
    const page = await fetchPage(cursor);
    for (const item of page[key] as readonly unknown[]) {
      if (!isRecord(item)) invalid++;
      else if (items.length < mostItems) items.push(item);
      else return { items, fault: `it has more than ${mostItems} entries` };
    }
    const next = page["nextCursor"];
    if (typeof next !== "string") return { items, fault: invalid > 0 ? `${invalid} entries are not objects` : undefined };
    if (seen.has(next)) return { items, fault: "its pages repeat in a cycle" };
    if (seen.size >= mostPages) return { items, fault: `it has more than ${mostPages} pages` };
    seen.add(next);
    cursor = next;
  }
}

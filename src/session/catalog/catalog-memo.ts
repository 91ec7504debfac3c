import type { CatalogView } from "./catalog-view.ts";
import { assembleCatalog, type CatalogSource, type ToolCatalog } from "./tool-catalog.ts";

/** Assembles, or gives back what was assembled of the same snapshots for an equal view. */
export type CatalogMemo = (sources: readonly CatalogSource[], view: CatalogView) => ToolCatalog;

// Of one set of snapshots. A host has few different views; sessions that make up new ones again and again lose the oldest.
const maxViews = 64;

/**
 * A memo over the identity of the sources' `tools` and the view's key. It keeps nothing alive: what was assembled goes
 * when one of the snapshots it was assembled of goes.
 */
export function createCatalogMemo(): CatalogMemo {
  const root = createNode();
  return (sources, view) => {
    let node = root;
    let names = "";
    for (const { kind, id, tools, diagnostics } of sources) {
      node = childOf(node, tools);
      if (diagnostics !== undefined && diagnostics.length > 0) node = childOf(node, diagnostics);
      names += `${kind} ${id.length} ${id} `;
    }
    return catalogOf(node.catalogs, names + view.key, () => assembleCatalog(sources, view));
  };
}

/** The catalogs of the snapshots on the way here, and the way on to sets with one more. */
interface Node {
  readonly next: WeakMap<object, Node>;
  readonly catalogs: Map<string, ToolCatalog>;
}

function createNode(): Node {
  return { next: new WeakMap(), catalogs: new Map() };
}

function childOf(node: Node, snapshot: object): Node {
  const known = node.next.get(snapshot);
  if (known !== undefined) return known;
  const child = createNode();
  node.next.set(snapshot, child);
  return child;
}

function catalogOf(catalogs: Map<string, ToolCatalog>, key: string, assemble: () => ToolCatalog): ToolCatalog {
  const catalog = catalogs.get(key) ?? assemble();
  // Taken out and put back: the first key is always the one not used for longest.
  catalogs.delete(key);
  catalogs.set(key, catalog);
  const oldest = catalogs.keys().next();
  if (catalogs.size > maxViews && oldest.done !== true) catalogs.delete(oldest.value);
  return catalog;
}

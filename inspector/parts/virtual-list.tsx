import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX, TargetedEvent, TargetedKeyboardEvent } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

interface VirtualListProps<Item> {
  readonly label: string;
  readonly items: readonly Item[];
  /** Another one when the same array has other items. */
  readonly revision?: number | undefined;
  readonly keyOf: (item: Item, index: number) => string;
  readonly row: (item: Item, index: number) => ComponentChildren;
  /** The same for all rows, in pixels. */
  readonly rowHeight: number;
  /** Stays at the end while items are added, unless the user scrolled away from it. */
  readonly followsEnd?: boolean;
}

const spare = 8;
/** By how many rows a key moves the focus. */
const steps: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** A list of any length: only the rows in view, and a few around them, are elements of the page. */
export function VirtualList<Item>({ label, items, keyOf, row, rowHeight, followsEnd = false }: VirtualListProps<Item>): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(600);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current!;
    if (followsEnd && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [items.length, followsEnd]);
  // A row can have the focus only after it was drawn.
  const wanted = useSignal<{ readonly index: number; readonly step: 1 | -1 } | undefined>(undefined);
  const wish = wanted.value;
  const moveFocus = (from: number, by: number): void => {
    const index = Math.max(0, Math.min(items.length - 1, from + by));
    if (index === from || items.length === 0) return;
    const element = box.current!;
    const rowTop = index * rowHeight;
    if (rowTop < element.scrollTop) element.scrollTop = rowTop;
    else if (rowTop + rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = rowTop + rowHeight - element.clientHeight;
    top.value = element.scrollTop;
    wanted.value = { index, step: by < 0 ? -1 : 1 };
  };
  useLayoutEffect(() => {
    if (wish === undefined) return;
    const { index, step } = wish;
    wanted.value = undefined;
    const row = box.current!.querySelector(`[aria-posinset="${index + 1}"]`);
    const target = row?.querySelector<HTMLElement>("a, button");
    // A heading is passed over.
    if (target === undefined || target === null) moveFocus(index, step);
    else target.focus({ preventScroll: true });
  }, [wish]);
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const by = steps[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const row = event.target instanceof Element ? event.target.closest("[aria-posinset]") : null;
    moveFocus(row === null ? -1 : Number(row.getAttribute("aria-posinset")) - 1, by);
  };
  const first = Math.max(0, Math.floor(top.value / rowHeight) - spare);
  const last = Math.min(items.length, Math.ceil((top.value + height.value) / rowHeight) + spare);
  const onScroll = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }: TargetedEvent<HTMLDivElement>): void => {
    // Items that were added since then have made the list longer: only scrolling up leaves the end.
    if (scrollTop + clientHeight >= scrollHeight - rowHeight) isAtEnd.current = true;
    else if (scrollTop < top.value) isAtEnd.current = false;
    top.value = scrollTop;
  };
  return (
    // A list that scrolls must be reachable with the keyboard.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    // biome-ignore lint/a11y/useSemanticElements: the height of a list element's children cannot be set
    <div ref={box} class="virtual" role="list" aria-label={label} tabIndex={0} onScroll={onScroll} onKeyDown={onKeyDown}>
      <div class="virtual-all" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, index) => (
          // biome-ignore lint/a11y/useSemanticElements: as above
          <div
            key={keyOf(item, first + index)}
            class="virtual-row"
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={first + index + 1}
            style={{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {row(item, first + index)}
          </div>
        ))}
      </div>
    </div>
  );
}

import { type Signal, signal } from "@preact/signals";

/** The views, in the order of the navigation. */
export const views = ["skills", "sessions", "calls", "servers", "events", "problems", "pins"] as const;
export type View = (typeof views)[number];

export interface Route {
  readonly view: View;
  /** What of it is shown: a folder, an id, a name. */
  readonly parts: readonly string[];
}

export const route: Signal<Route> = signal(parseRoute(location.hash));

addEventListener("hashchange", () => {
  // The address of a host that was started again, entered into this page: only a new page exchanges its token.
  if (/[#&]token=/.test(location.hash)) location.reload();
  followAddress();
});

/** Shows what the address names. To be called after a change of it that is not a navigation. */
export function followAddress(): void {
  route.value = parseRoute(location.hash);
}

/** A deep link to a part of a view. */
export function linkTo(view: View, ...parts: readonly string[]): string {
  return `#/${[view, ...parts.map(encodeURIComponent)].join("/")}`;
}

export function goTo(view: View, ...parts: readonly string[]): void {
  location.hash = linkTo(view, ...parts);
}

function parseRoute(hash: string): Route {
  const [view = "", ...parts] = hash.replace(/^#\/?/, "").split("/").map(decode);
  return (views as readonly string[]).includes(view) ? { view: view as View, parts } : { view: "skills", parts: [] };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // An address that was cut or edited.
    return part;
  }
}

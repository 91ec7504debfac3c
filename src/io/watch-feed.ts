import type { ChangeBatch } from "./watch-batch.ts";
import { type HintListener, type Opened, openDirectoryWatch } from "./watch-native.ts";
import type { PathResolutions } from "./watch-resolution.ts";

export type WatchTrouble = "limit" | "unreadable" | "too-many" | "too-deep";

/** What the trees of one watcher share. */
export interface TreeContext {
  readonly batch: ChangeBatch;
  readonly resolutions: PathResolutions;
  readonly budget: { directories: number; readonly maxDirectories: number };
  /** The path is made only if somebody looks at it: a name decides most cases. */
  ignore(name: string, path: () => string): boolean;
  /** Something was hinted at: `settle` is to be called soon. */
  touch(): void;
  problem(trouble: WatchTrouble, path: string, code: string): void;
}

/** Where the hints about one root come from, as long as the root is there. */
export interface HintFeed extends Disposable {
  /** Starts hints about one directory. One that is not watched yet, or cannot be, is polled, and asked for again. */
  open(path: string, listener: HintListener): Opened;
}

export type CreateFeed = (path: string, onHint: (segments: readonly string[]) => void) => HintFeed;

/** One native watch per directory. */
export const nativeFeed: HintFeed = {
  open: openDirectoryWatch,
  [Symbol.dispose]: () => {},
};

import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { writeFileAtomic } from "../io/atomic-write.ts";

/**
 * Remembers which signatures were found right, since finding it out takes longer than all else that is looked at. Only
 * that is remembered: whether the key is trusted and the files are the signed ones is found out each time.
 */
export interface VerifiedSignatures {
  /** `keyOf` gives another text for any other key, signature or statement. What is wrong is not remembered. */
  check(keyOf: () => string, verify: () => boolean): boolean;
  /** Keeps what was found since. Never rejects: what cannot be kept is found out again. */
  keep(): Promise<void>;
}

// A line each: 1.3 MB.
const most = 20_000;

/** `file`: where they are kept between runs, in the user's own folder; whoever can write there could trust keys as well. */
export function createVerifiedSignatures(file?: string): VerifiedSignatures {
  let known: Set<string> | undefined;
  let isNews = false;
  return {
    check(keyOf, verify) {
      known ??= new Set(file === undefined ? [] : readLines(file));
      const key = keyOf();
      if (known.has(key)) return true;
      if (!verify()) return false;
      known.add(key);
      isNews = true;
      return true;
    },
    async keep() {
      if (!isNews || file === undefined || known === undefined) return;
      isNews = false;
      try {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        // What others kept meanwhile is worth a look, and no more: it can be found out again.
        const all = [...new Set([...readLines(file), ...known])].slice(-most);
        await writeFileAtomic(file, `${all.join("\n")}\n`, { mode: 0o600 });
        chmodSync(file, 0o600);
      } catch {
        // A folder that cannot be written: they are verified again next time.
      }
    },
  };
}

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => /^[0-9a-f]{64}$/.test(line));
  } catch {
    // Not there yet, or not readable.
    return [];
  }
}

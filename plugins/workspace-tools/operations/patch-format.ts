/** The change of one file in a patch. */
export type PatchStep =
  | { readonly kind: "add"; readonly path: string; readonly text: string }
  | { readonly kind: "delete"; readonly path: string }
  | { readonly kind: "update"; readonly path: string; readonly moveTo: string | undefined; readonly hunks: readonly Hunk[] };

/** Lines and their replacement. */
export interface Hunk {
  /** Lines to skip to first, in order: the texts after `@@`. */
  readonly headers: readonly string[];
  /** Lines as they are in the file: kept and removed ones. */
  readonly old: readonly string[];
  /** The new lines. A number is the index of a kept line in `old`. */
  readonly now: readonly (string | number)[];
  /** The hunk matches the last lines of the file. */
  readonly isAtEnd: boolean;
  /** The number of its first line in the patch, for messages. */
  readonly line: number;
}

export interface PatchFault {
  readonly fault: string;
}

const maxPatchLines = 100_000;

/**
 * Parses a patch between `*** Begin Patch` and `*** End Patch`: `*** Add File:`, `*** Delete File:` and `*** Update File:`
 * with `*** Move to:` and hunks, whose lines begin with a space, `-` or `+`.
 */
export function parsePatch(text: string): readonly PatchStep[] | PatchFault {
  const lines = text.trim().split(/\r?\n/);
  if (lines.length > maxPatchLines) return { fault: `it has more than ${maxPatchLines} lines` };
  if (lines[0]?.trim() !== "*** Begin Patch") return { fault: 'its first line must be "*** Begin Patch"' };
  if (lines.at(-1)?.trim() !== "*** End Patch") return { fault: 'its last line must be "*** End Patch"' };
  const reader = new PatchReader(lines);
  const steps: PatchStep[] = [];
  while (!reader.isDone) {
    const step = reader.readStep();
    if ("fault" in step) return step;
    steps.push(step);
  }
  return steps.length === 0 ? { fault: "it names no file" } : steps;
}

/** Whether parsing failed. */
export function isPatchFault(read: readonly PatchStep[] | PatchFault): read is PatchFault {
  return "fault" in read;
}

const fileLine = /^\*\*\* (Add|Delete|Update) File:/;
const moveMark = "*** Move to:";

class PatchReader {
  readonly #lines: readonly string[];
  #at = 1;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  get isDone(): boolean {
    return this.#at >= this.#lines.length - 1;
  }

  readStep(): PatchStep | PatchFault {
    const [mark = "", kind] = fileLine.exec(this.#line) ?? [];
    const path = this.#line.slice(mark.length).trim();
    if (kind === undefined)
      return this.#fault('a line "*** Add File: <path>", "*** Update File: <path>" or "*** Delete File: <path>" is expected');
    if (path === "") return this.#fault("the path is missing");
    this.#at++;
    if (kind === "Delete") return { kind: "delete", path };
    return kind === "Add" ? this.#readAdded(path) : this.#readUpdate(path);
  }

  #readAdded(path: string): PatchStep | PatchFault {
    const text: string[] = [];
    for (; !this.isDone && !this.#isFileLine; this.#at++) {
      if (!this.#line.startsWith("+")) return this.#fault(`every line of a file that is added must begin with "+"`);
      text.push(this.#line.slice(1));
    }
    return { kind: "add", path, text: text.map((line) => `${line}\n`).join("") };
  }

  #readUpdate(path: string): PatchStep | PatchFault {
    const target = this.#line.startsWith(moveMark) ? this.#line.slice(moveMark.length).trim() : "";
    const moveTo = target === "" ? undefined : target;
    if (moveTo !== undefined) this.#at++;
    const hunks: Hunk[] = [];
    while (!this.isDone && !this.#isFileLine) {
      const hunk = this.#readHunk(hunks.length === 0);
      if ("fault" in hunk) return hunk;
      hunks.push(hunk);
    }
    if (hunks.length === 0 && moveTo === undefined) return this.#fault(`nothing is said of what is to change in ${path}`);
    return { kind: "update", path, moveTo, hunks };
  }

  #readHunk(isFirst: boolean): Hunk | PatchFault {
    const line = this.#at + 1;
    const headers: string[] = [];
    for (; !this.isDone && this.#line.startsWith("@@"); this.#at++) {
      const header = this.#line.slice(2).replace(/^ /, "").replace(/ @@$/, "").trimEnd();
      // Line numbers, as in other diff formats, do not locate a hunk.
      if (header !== "" && !/^-\d+(,\d+)? \+\d+(,\d+)?( @@.*)?$/.test(header)) headers.push(header);
    }
    if (this.#at + 1 === line && !isFirst) return this.#fault('a line that begins with "@@", " ", "-" or "+" is expected');
    const [old, now]: [string[], (string | number)[]] = [[], []];
    for (; !this.isDone && !this.#isMark; this.#at++) {
      // Models omit the leading space of an empty line.
      const [sign = " ", rest] = [this.#line[0], this.#line.slice(1)];
      if (sign !== " " && sign !== "-" && sign !== "+") return this.#fault('every line of a hunk must begin with " ", "-" or "+"');
      if (sign === " ") now.push(old.length);
      if (sign === "+") now.push(rest);
      else old.push(rest);
    }
    const isAtEnd = !this.isDone && this.#line.trim() === "*** End of File";
    if (isAtEnd) this.#at++;
    if (old.length === 0 && now.length === 0) return this.#fault("the hunk has no lines");
    return { headers, old, now, isAtEnd, line };
  }

  get #line(): string {
    return this.#lines[this.#at]!;
  }

  get #isFileLine(): boolean {
    return fileLine.test(this.#line);
  }

  get #isMark(): boolean {
    return this.#isFileLine || this.#line.startsWith("@@") || this.#line.trim() === "*** End of File";
  }

  #fault(what: string): PatchFault {
    return { fault: `line ${this.#at + 1}: ${what}` };
  }
}

/** The index of a line of the code, and of the line of the text that it repeats. */
export type Anchor = readonly [own: number, place: number];

/** Lines that contain a word and occur exactly once in both. */
export function uniqueAnchors(lines: readonly string[], start: number, own: readonly string[]): readonly Anchor[] {
  const places = placesOf(lines, start);
  const ownPlaces = placesOf(own, 0);
  const anchors: Anchor[] = [];
  for (const [line, at] of ownPlaces) {
    const place = places.get(line);
    if (/\w/.test(line) && at !== several && place !== undefined && place !== several) anchors.push([at, place]);
  }
  return anchors;
}

const several = -1;

function placesOf(lines: readonly string[], start: number): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (let at = start; at < lines.length; at++) {
    const key = lines[at]!.trimEnd();
    places.set(key, places.has(key) ? several : at);
  }
  return places;
}

/** Adds the equal lines next to the anchors, which may occur several times. */
export function extended(lines: readonly string[], start: number, own: readonly string[], anchors: readonly Anchor[]): readonly Anchor[] {
  const all = new Map<number, number>(anchors.map(([at, place]) => [at, place]));
  const grow = ([at, place]: Anchor, by: 1 | -1): void => {
    const taken = new Set(all.values());
    for (let [next, there] = [at + by, place + by]; ; next += by, there += by) {
      const isInside = next >= 0 && next < own.length && there >= start && there < lines.length;
      if (!isInside || all.has(next) || taken.has(there) || own[next]!.trimEnd() !== lines[there]!.trimEnd()) return;
      all.set(next, there);
    }
  };
  for (const anchor of anchors) {
    grow(anchor, -1);
    grow(anchor, 1);
  }
  return [...all].sort(([a], [b]) => a - b);
}

/** A line that closes a block: punctuation only, or a closing keyword. */
const closes = /^(?:[)\]}>;,]+|(?:<\/[\w.-]+>|end|fi|done|esac)[)\]};,]*)$/;

/**
 * Lines after `after` in the stretch that close a block, with the lines that close the same block in the text: the first
 * equal line, if everything before it is indented more in both.
 */
export function closingAnchors(lines: readonly string[], start: number, own: readonly string[], after: number): readonly Anchor[] {
  const anchors: Anchor[] = [];
  let [from, ownFrom] = [start, after + 1];
  for (let at = ownFrom; at < own.length; at++) {
    const line = own[at]!.trimEnd();
    if (!closes.test(line.trim())) continue;
    const place = lines.findIndex((other, index) => index >= from && other.trimEnd() === line);
    if (place === -1 || ![...own.slice(ownFrom, at), ...lines.slice(from, place)].every((inner) => isDeeper(inner, line))) break;
    anchors.push([at, place]);
    [from, ownFrom] = [place + 1, at + 1];
  }
  return anchors;
}

/** Whether a line is indented more than another. Empty lines fit any depth. */
export function isDeeper(line: string, other: string): boolean {
  if (line.trim() === "") return true;
  return other.trim() !== "" && indentOf(line) > indentOf(other);
}

export function indentOf(line: string): number {
  const [white = ""] = /^[ \t]*/.exec(line) ?? [];
  // The width does not matter: more of the same is deeper.
  return white.replaceAll("\t", "    ").length;
}

/** A line of some code, and the line of a text that it repeats, by their numbers. */
export type Anchor = readonly [own: number, place: number];

/** Lines with a word in them that both have once. */
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

/** With the equal lines next to them, which may be there several times. */
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

/** What closes a block: no words, or one that does nothing else. */
const closes = /^(?:[)\]}>;,]+|(?:<\/[\w.-]+>|end|fi|done|esac)[)\]};,]*)$/;

/**
 * Closing lines that are behind `after` in the stretch, where the text closes the same block: the first line like it, when
 * all that comes before it, in both, is deeper.
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

/** Whether a line is indented more than another one. Empty ones lie anywhere. */
export function isDeeper(line: string, other: string): boolean {
  if (line.trim() === "") return true;
  return other.trim() !== "" && indentOf(line) > indentOf(other);
}

export function indentOf(line: string): number {
  const [white = ""] = /^[ \t]*/.exec(line) ?? [];
  // However wide it is: more of the same is deeper.
  return white.replaceAll("\t", "    ").length;
}

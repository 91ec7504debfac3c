/** A part of a text. */
interface Passage {
  readonly text: string;
  readonly score: number;
  readonly index: number;
}

/**
 * Selects the parts of a text that match the words of a query, at most `max` characters, in the order of the text: the
 * paragraphs with the most words, with their neighbours, as far as they fit. Without a match: its beginning.
 */
export function selectPassages(text: string, query: string, max: number): string {
  if (text.length <= max) return text;
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [])].slice(0, maxWords);
  const passages = toPassages(text, max).map((part, index): Passage => ({ text: part, index, score: scoreOf(part, words) }));
  const chosen = choose(passages, max);
  if (chosen.length === 0) return `${text.slice(0, max)}\n${cutMark}`;
  const parts: string[] = [];
  let next = 0;
  for (const { index, text: part } of chosen) {
    if (index !== next) parts.push(cutMark);
    parts.push(part);
    next = index + 1;
  }
  if (next < passages.length) parts.push(cutMark);
  return parts.join("\n\n");
}

const maxWords = 32;
const cutMark = "[…]";

/** Paragraphs. One that is longer than a quarter of `max` is split. */
function toPassages(text: string, max: number): readonly string[] {
  const most = Math.max(200, Math.floor(max / 4));
  return text.split(/\n{2,}/).flatMap((paragraph) => {
    const parts: string[] = [];
    for (let at = 0; at < paragraph.length; at += most) parts.push(paragraph.slice(at, at + most));
    return parts;
  });
}

/** The number of query words in it; doubled for a heading. */
function scoreOf(part: string, words: readonly string[]): number {
  const text = part.toLowerCase();
  const found = words.filter((word) => text.includes(word)).length;
  return part.startsWith("#") ? found * 2 : found;
}

function choose(passages: readonly Passage[], max: number): readonly Passage[] {
  const chosen = new Set<Passage>();
  let room = max;
  const take = (passage: Passage | undefined): void => {
    if (passage === undefined || chosen.has(passage) || passage.text.length + 2 > room) return;
    chosen.add(passage);
    room -= passage.text.length + 2;
  };
  const best = passages.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.index - b.index);
  for (const passage of best) {
    take(passage);
    // A heading needs the text below it, and a paragraph is clearer with the one before it.
    take(passages[passage.index + 1]);
    take(passages[passage.index - 1]);
  }
  return [...chosen].sort((a, b) => a.index - b.index);
}

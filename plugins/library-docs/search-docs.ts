export interface DocsSearch {
  readonly query: string;
  /** The maximum length of an answer. */
  readonly maxChars: number;
}

const maxSections = 8;
const maxSectionChars = 1500;
const overviewSections = 5;
const maxOverviewChars = 800;
const separator = "\n\n---\n\n";

/**
 * Returns the sections of Markdown documents that match a query best. A section begins with a `## ` heading. It scores 1
 * for each term that it contains, and 2 more for each term in its first line, regardless of repetitions. Without a match
 * it returns the first sections as an overview. "" when there are no sections.
 */
export function searchDocs(documents: readonly string[], { query, maxChars }: DocsSearch): string {
  const sections = documents.flatMap(sectionsOf);
  const terms = [...new Set(query.toLowerCase().split(/\s+/).filter(Boolean))];
  const found = sections
    .map((section) => ({ section, score: scoreOf(section.toLowerCase(), terms) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, maxSections)
    .map(({ section }) => section.slice(0, maxSectionChars));
  return found.length > 0 ? bestThatFit(found, maxChars) : overview(sections, maxChars);
}

function sectionsOf(document: string): string[] {
  return document
    .split(/^(?=## )/m)
    .map((section) => section.trim())
    .filter((section) => section !== "");
}

function scoreOf(section: string, terms: readonly string[]): number {
  const [heading = ""] = section.split("\n", 1);
  return terms.reduce((score, term) => score + (section.includes(term) ? 1 : 0) + (heading.includes(term) ? 2 : 0), 0);
}

/** Counts the sections that do not fit, so that the model knows about them. */
function bestThatFit(found: readonly string[], maxChars: number): string {
  for (let count = fittingCount(found, maxChars); count > 0; count--) {
    const text = [...found.slice(0, count), ...hint(found.length - count)].join(separator);
    if (text.length <= maxChars) return text;
  }
  const [only = ""] = found;
  // If no section fits, returns the beginning of the best one.
  return cut([only, ...hint(found.length - 1)].join(separator), maxChars);
}

function fittingCount(found: readonly string[], maxChars: number): number {
  let total = 0;
  const first = found.findIndex((section) => {
    total += section.length;
    return total > maxChars;
  });
  return first === -1 ? found.length : first;
}

function hint(left: number): readonly string[] {
  return left === 0 ? [] : [`... ${left} more matching sections. Narrow your query.`];
}

function overview(sections: readonly string[], maxChars: number): string {
  return cut(
    sections
      .slice(0, overviewSections)
      .map((section) => section.slice(0, maxOverviewChars))
      .join(separator),
    maxChars,
  );
}

/** Cuts to a number of UTF-16 units without splitting a surrogate pair. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const last = text.charCodeAt(maxChars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? maxChars - 1 : maxChars);
}

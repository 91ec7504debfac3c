/** A library whose documentation is bundled. */
export interface Library {
  /** The id for `get_library_docs`, and the name of its folder. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly aliases: readonly string[];
}

export const libraries: readonly Library[] = Object.freeze([
  {
    id: "playwright",
    title: "Playwright",
    description: "Browser automation and end-to-end tests: locators, actions, web-first assertions.",
    aliases: ["playwright-java", "microsoft/playwright", "pw"],
  },
  {
    id: "selenium",
    title: "Selenium WebDriver",
    description: "Browser automation by the WebDriver protocol: finding elements, waits, actions, Grid.",
    aliases: ["selenium-java", "seleniumhq", "webdriver"],
  },
  {
    id: "cucumber",
    title: "Cucumber",
    description: "Runs Gherkin scenarios as tests: step definitions, hooks, configuration, reports.",
    aliases: ["cucumber-java", "cucumber-jvm", "cucumber-junit"],
  },
  {
    id: "gherkin",
    title: "Gherkin",
    description: "The language of feature files: features, scenarios, outlines, tables, tags.",
    aliases: ["feature-file", "bdd", "given-when-then"],
  },
  {
    id: "java",
    title: "Java SE",
    description: "The language and its core library: collections, streams, records, time, files, concurrency.",
    aliases: ["java-se", "jdk", "java-api", "java-lang"],
  },
]);

/** A single letter would match too many names. */
const minLength = 2;

/**
 * Finds libraries by name: the one with this id or alias, else those that share a part with it at word boundaries. So
 * "java-streams" matches "java", and "javascript" does not.
 */
export function findLibraries(name: string, among: readonly Library[] = libraries): readonly Library[] {
  const wanted = name.trim().toLowerCase();
  if (wanted.length < minLength) return [];
  const exact = among.find((library) => namesOf(library).some((known) => known === wanted || known === lastPart(wanted)));
  if (exact !== undefined) return [exact];
  return among.filter((library) => namesOf(library).some((known) => beginsAWord(known, wanted) || isWordOf(wanted, known)));
}

/** Finds a library by its own id or by one such as `/microsoft/playwright`, optionally with a version. */
export function libraryOfId(id: string, among: readonly Library[] = libraries): Library | undefined {
  const wanted = id.trim().toLowerCase().replace(/^\/+/, "");
  const bare = lastPart(wanted.replace(/@[^/]*$/, ""));
  return among.find((library) => namesOf(library).some((known) => known === wanted || known === bare));
}

function namesOf({ id, aliases }: Library): readonly string[] {
  return [id, ...aliases];
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

function beginsAWord(text: string, part: string): boolean {
  return wordStarts(text).some((start) => text.startsWith(part, start));
}

function isWordOf(text: string, word: string): boolean {
  return wordStarts(text).some(
    (start) => text.startsWith(word, start) && !/[\p{L}\p{N}]/u.test(text.slice(start + word.length, start + word.length + 1)),
  );
}

function wordStarts(text: string): readonly number[] {
  return [...text.matchAll(/(?<![\p{L}\p{N}])[\p{L}\p{N}]/gu)].map(({ index }) => index);
}

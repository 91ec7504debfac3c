// Counts words that we do not write (see "How we write" in CONTRIBUTING.md) and fails where there are more than on record.
// The record may only shrink: `node scripts/check-language.mjs --record` writes today's counts where they are lower.
// Strings of src and its comments are counted apart: what users and models read has to be at zero.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "oxc-parser";

const root = fileURLToPath(new URL("..", import.meta.url));
const recordFile = join(root, "scripts/language-record.json");

/** Expression → what to write instead. */
const banned = new Map([
  [/(?<!\b(?:there|answer) )\b(?:is|are) (?:no|none)\b(?! longer| more)/gi, "is not a …, must not, is absent"],
  [/\b(?:tell(?! the user\b)|tells|told|telling)\b/gi, "reports, notifies, emits, announces"],
  [/\b(?:nobody|somebody|whoever)\b/gi, "the user, the client, the caller, no client"],
  [/\bmend(?:s|ed|ing)?\b/gi, "fix"],
  [/\b(?:goes|go(?! on this machine)|gone|going) on\b/gi, "continues, resumes"],
  [/\banew\b/gi, "again"],
  [/\bheed(?:s|ed|ing)?\b/gi, "respect"],
  [/\b(?:be|is|are|was) had\b/gi, "exists, is available"],
  [/\bof one name\b/gi, "with the same name"],
  [/\bserves on\b|\blast good generation\b/gi, "keeps running, last working version"],
  [/\b(?:is|are|was|were) passed over\b/gi, "is ignored"],
  [/\b(?:comes|came|come) of it\b/gi, "the result, the outcome"],
  [/\w*(?:Keeper|Shelf|Desk(?!top))\w*/g, "store, cache, registry, queue"],
]);

/** Areas of the project with the texts of their files. What comes from elsewhere (fixtures, recorded texts) does not count. */
function areas() {
  const found = new Map();
  const rooms = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name } of rooms) found.set(`src/${name}`, filesIn(`src/${name}`).map(withoutStrings));
  found.set("src strings", filesIn("src").map(onlyStrings));
  for (const folder of ["plugins", "skills", "examples", "bench", "scripts", "test"]) found.set(folder, filesIn(folder).map(whole));
  const pages = readdirSync(root).filter((name) => name.endsWith(".md") && name !== "CHANGELOG.md");
  found.set("docs", [...filesIn("docs"), ...pages].map(whole));
  return found;
}

function filesIn(folder) {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => `${folder}/${name.split(sep).join("/")}`)
    .filter((path) => /\.(?:ts|mjs|py|md)$/.test(path) && !/\/(?:node_modules|fixtures)\/|check-language\.mjs$/.test(path));
}

function whole(path) {
  const text = readFileSync(join(root, path), "utf8");
  // Python's operator.
  return { path, text: path.endsWith(".py") ? text.replaceAll("is None", "is_None") : text };
}

const withoutStrings = (path) => split(path, false);
const onlyStrings = (path) => split(path, true);

/** The text of a module with its strings, or all else, blanked out: lines keep their numbers. */
function split(path, keepsStrings) {
  const { text } = whole(path);
  const strings = [];
  const add = ({ start, end }) => strings.push([start, end]);
  // A string without a space is a name that code compares.
  const isSentence = ({ value }) => typeof value === "string" && /\s/.test(value);
  const visitor = new Visitor({ Literal: (node) => isSentence(node) && add(node), TemplateElement: add });
  visitor.visit(parseSync(path, text).program);
  const isString = new Uint8Array(text.length);
  for (const [start, end] of strings) isString.fill(1, start, end);
  const kept = [...text.split("")].map((char, index) => (char === "\n" || (isString[index] === 1) === keepsStrings ? char : " "));
  return { path, text: kept.join("") };
}

function occurrences(texts) {
  return texts.flatMap(({ path, text }) =>
    text
      .split("\n")
      .flatMap((line, index) =>
        [...banned].flatMap(([pattern, instead]) =>
          [...line.matchAll(pattern)].map(([word]) => `${path}:${index + 1}: "${word}"; write: ${instead}`),
        ),
      ),
  );
}

const found = new Map([...areas()].map(([area, texts]) => [area, occurrences(texts)]));
const record = JSON.parse(readFileSync(recordFile, "utf8"));
if (process.argv.includes("--record")) lowerRecord();
else for (const [area, places] of found) check(area, places);

function lowerRecord() {
  const lower = [...found].map(([area, places]) => [area, Math.min(places.length, record[area] ?? places.length)]);
  writeFileSync(recordFile, `${JSON.stringify(Object.fromEntries(lower), null, 2)}\n`);
}

function check(area, places) {
  const allowed = record[area] ?? 0;
  if (places.length <= allowed) return;
  process.exitCode = 1;
  console.error(`${area} has ${places.length} words that we do not write, and ${allowed} are on record. Reword what was added:`);
  for (const place of places.slice(0, 100)) console.error(`  ${place}`);
  if (places.length > 100) console.error(`  and ${places.length - 100} more`);
}

// Counts words that we do not write (see "How we write" in CONTRIBUTING.md) and fails where there are more than on record.
// The record may only shrink: `node scripts/check-language.mjs --record` writes today's counts where they are lower.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const recordFile = join(root, "scripts/language-record.json");

/** Expression → what to write instead. */
const banned = new Map([
  [/(?<!\bthere )\b(?:is|are) (?:no|none)\b(?! longer| more)/gi, "is not a …, must not, is absent"],
  [/\b(?:tell|tells|told|telling)\b/gi, "reports, notifies, emits, announces"],
  [/\b(?:nobody|somebody|whoever)\b/gi, "the user, the client, the caller, no client"],
  [/\bmend(?:s|ed|ing)?\b/gi, "fix"],
  [/\b(?:goes|go|gone|going) on\b/gi, "continues, resumes"],
  [/\banew\b/gi, "again"],
  [/\bheed(?:s|ed|ing)?\b/gi, "respect"],
  [/\b(?:be|is|are|was) had\b/gi, "exists, is available"],
  [/\w*(?:Keeper|Shelf|Desk)\w*/g, "store, cache, registry, queue"],
]);

/** Areas of the project with their files. What comes from elsewhere (fixtures, recorded texts) does not count. */
function areas() {
  const rooms = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const found = new Map(rooms.map(({ name }) => [`src/${name}`, filesIn(`src/${name}`)]));
  for (const folder of ["plugins", "skills", "examples", "bench", "scripts", "test"]) found.set(folder, filesIn(folder));
  const pages = readdirSync(root).filter((name) => name.endsWith(".md") && name !== "CHANGELOG.md");
  found.set("docs", [...filesIn("docs"), ...pages]);
  return found;
}

function filesIn(folder) {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => `${folder}/${name.split(sep).join("/")}`)
    .filter((path) => /\.(?:ts|mjs|py|md)$/.test(path) && !/\/(?:node_modules|fixtures)\/|check-language\.mjs$/.test(path));
}

function occurrences(files) {
  return files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        [...banned].flatMap(([pattern, instead]) =>
          [...line.matchAll(pattern)].map(([word]) => `${file}:${index + 1}: "${word}"; write: ${instead}`),
        ),
      ),
  );
}

const found = new Map([...areas()].map(([area, files]) => [area, occurrences(files)]));
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

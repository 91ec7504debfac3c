// Loads every SKILL.md that an index lists, each on its own, and compares what came out with the index.
//
//   npm run corpus -- <dir> <index.tsv>
//
// The index has a header line with the columns repo, commit, path, strict_valid, strict_findings, expected_name and
// expected_description_length (UTF-16 units, trimmed); a file lies at <dir>/<repo with / as +>/<path>.
// Exit 0: every file loaded with that name and description. 1: some did not. 2: wrong usage.
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const dist = new URL("../dist/formats/", import.meta.url);

// What the index calls the findings of the strict check, by our codes.
const findingNames = {
  FRONT_MATTER_MISSING: "no-frontmatter",
  FRONT_MATTER_UNCLOSED: "not-closed",
  SKILL_YAML_INVALID: "parse/yaml",
  SKILL_YAML_FLOW_LIST: "parse/strictyaml:flow-seq",
  SKILL_YAML_FLOW_MAP: "parse/strictyaml:flow-map",
  SKILL_FIELDS_UNEXPECTED: "unexpected-fields",
  SKILL_NAME_MISSING: "missing-name",
  SKILL_DESCRIPTION_MISSING: "missing-description",
  SKILL_NAME_TOO_LONG: "name-too-long",
  SKILL_NAME_NOT_LOWERCASE: "name-not-lowercase",
  SKILL_NAME_CHARACTERS: "name-bad-chars",
  SKILL_NAME_MISMATCH: "name-dir-mismatch",
  SKILL_DESCRIPTION_TOO_LONG: "description-too-long",
};

process.exitCode = await main(process.argv.slice(2));

async function main([directory, index, ...rest]) {
  if (directory === undefined || index === undefined || rest.length > 0) return usage("Give a directory and an index file.");
  for (const path of [directory, index]) if (!existsSync(path)) return usage(`${path} is not there.`);
  if (!existsSync(new URL("skill-document.js", dist))) return usage("There is no build. Run `npm run build` first.");
  const { decodeText } = await import(new URL("decode-text.js", dist));
  const { parseSkillDocument } = await import(new URL("skill-document.js", dist));
  const { lintSkillDocument } = await import(new URL("lint-skill-document.js", dist));
  const rows = readIndex(index);
  const start = performance.now();
  const results = rows.map((row) => loadRow(row, directory, { decodeText, parseSkillDocument }));
  const milliseconds = performance.now() - start;
  report(results, milliseconds);
  reportLint(results, lintSkillDocument);
  return results.every((result) => result.sameName && result.sameDescription) ? 0 : 1;
}

function usage(message) {
  console.error(`${message}\nUsage: npm run corpus -- <dir> <index.tsv>`);
  return 2;
}

function readIndex(file) {
  const [header = "", ...lines] = readFileSync(file, "utf8").trimEnd().split(/\r?\n/);
  const columns = header.split("\t");
  return lines.map((line) => Object.fromEntries(line.split("\t").map((cell, at) => [columns[at], cell])));
}

function loadRow(row, directory, { decodeText, parseSkillDocument }) {
  const file = join(directory, row.repo.replaceAll("/", "+"), row.path);
  const at = { file, directoryName: basename(dirname(file)) };
  try {
    const { text } = decodeText(readFileSync(file), file);
    const { document } = parseSkillDocument(text, at);
    const length = document.description.trim().length;
    return {
      row,
      at,
      text,
      document,
      sameName: document.name === row.expected_name,
      sameDescription: length === Number(row.expected_description_length),
    };
  } catch (error) {
    return { row, at, error, sameName: false, sameDescription: false };
  }
}

function report(results, milliseconds) {
  for (const { row, document, error, sameName, sameDescription } of results) {
    if (error) console.log(`${row.repo}/${row.path}: ${error.message}`);
    else if (!sameName)
      console.log(`${row.repo}/${row.path}: name ${JSON.stringify(document.name)}, expected ${JSON.stringify(row.expected_name)}`);
    if (document && !sameDescription) {
      const { description } = document;
      console.log(
        `${row.repo}/${row.path}: description of ${description.trim().length}, expected ${row.expected_description_length}: ${JSON.stringify(description.slice(0, 100))}`,
      );
    }
  }
  const count = (test) => results.filter(test).length;
  const loaded = count(({ document }) => document);
  const [names, descriptions] = [count(({ sameName }) => sameName), count(({ sameDescription }) => sameDescription)];
  console.log(
    `${results.length} files, ${loaded} loaded, ${names} names equal, ${descriptions} descriptions equal, ${Math.round(milliseconds)} ms`,
  );
}

// How the strict lint agrees with the index, finding by finding. The index stops at the first parse fault of a file.
function reportLint(results, lintSkillDocument) {
  const table = new Map();
  const add = (finding, column) =>
    table.set(finding, { index: 0, lint: 0, both: 0, ...table.get(finding), [column]: (table.get(finding)?.[column] ?? 0) + 1 });
  for (const { row, at, text } of results) {
    if (text === undefined) continue;
    const expected = (row.strict_findings ?? "")
      .split(";")
      .filter(Boolean)
      .map((finding) => (finding.startsWith("parse/yaml") ? "parse/yaml" : finding));
    const errors = lintSkillDocument(text, at).filter(({ severity }) => severity === "error");
    const codes = errors.map(({ code }) => findingNames[code] ?? code);
    const isParseFault = (finding) => finding.startsWith("parse/");
    const found = codes.some(isParseFault) ? codes.filter(isParseFault).slice(0, 1) : [...new Set(codes)];
    for (const finding of new Set([
      ...expected,
      ...found,
      ...(row.strict_valid === "y" ? ["valid"] : []),
      ...(errors.length === 0 ? ["valid"] : []),
    ])) {
      const inIndex = finding === "valid" ? row.strict_valid === "y" : expected.includes(finding);
      const inLint = finding === "valid" ? errors.length === 0 : found.includes(finding);
      if (inIndex) add(finding, "index");
      if (inLint) add(finding, "lint");
      if (inIndex && inLint) add(finding, "both");
    }
  }
  console.table(Object.fromEntries([...table].sort(([a], [b]) => a.localeCompare(b))));
}

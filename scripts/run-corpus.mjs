// Loads every SKILL.md that an index lists, each on its own, and compares what came out with the index.
//
//   npm run corpus -- <dir> <index.tsv> [--strict <table.txt>]
//
// The index has a header line with the columns repo, commit, path, strict_valid, strict_findings, expected_name and
// expected_description_length (UTF-16 units, trimmed); a file lies at <dir>/<repo with / as +>/<path>.
// --strict writes how the strict check agrees with the index: every condition of the Agent Skills reference validator with
// its counts, and what the check says beyond it.
// Exit 0: every file loaded with that name and description. 1: some did not. 2: wrong usage.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const dist = new URL("../build/dist/formats/", import.meta.url);

// What the index calls the findings of the strict check, by our codes; in the order of the reference validator.
const findingNames = {
  SKILL_DOCUMENT_MISSING: "no-skill-md",
  FRONT_MATTER_MISSING: "no-frontmatter",
  FRONT_MATTER_UNCLOSED: "not-closed",
  FRONT_MATTER_TOO_LARGE: "parse/too-large",
  SKILL_YAML_INVALID: "parse/yaml",
  SKILL_YAML_FLOW_LIST: "parse/strictyaml:flow-seq",
  SKILL_YAML_FLOW_MAP: "parse/strictyaml:flow-map",
  SKILL_YAML_ANCHOR: "parse/strictyaml:anchor",
  SKILL_YAML_ALIAS: "parse/strictyaml:alias",
  SKILL_YAML_TAG: "parse/strictyaml:tag",
  FRONT_MATTER_DUPLICATE_KEY: "parse/strictyaml:duplicate-key",
  FRONT_MATTER_NOT_MAP: "parse/not-mapping",
  SKILL_FIELDS_UNEXPECTED: "unexpected-fields",
  SKILL_NAME_MISSING: "missing-name",
  SKILL_DESCRIPTION_MISSING: "missing-description",
  SKILL_NAME_EMPTY: "name-empty",
  SKILL_DESCRIPTION_EMPTY: "description-empty",
  SKILL_NAME_TOO_LONG: "name-too-long",
  SKILL_NAME_NOT_LOWERCASE: "name-not-lowercase",
  SKILL_NAME_HYPHEN_EDGE: "name-hyphen-edge",
  SKILL_NAME_DOUBLE_HYPHEN: "name-double-hyphen",
  SKILL_NAME_CHARACTERS: "name-bad-chars",
  SKILL_NAME_MISMATCH: "name-dir-mismatch",
  SKILL_DESCRIPTION_TOO_LONG: "description-too-long",
  SKILL_COMPATIBILITY_TYPE: "compatibility-type",
  SKILL_COMPATIBILITY_TOO_LONG: "compatibility-too-long",
};

process.exitCode = await main(process.argv.slice(2));

async function main([directory, index, ...rest]) {
  const isUsable = rest.length === 0 || (rest.length === 2 && rest[0] === "--strict");
  if (directory === undefined || index === undefined || !isUsable) return usage("Give a directory and an index file.");
  for (const path of [directory, index]) if (!existsSync(path)) return usage(`${path} is not there.`);
  if (!existsSync(new URL("skills/skill-document.js", dist))) return usage("There is no build. Run `npm run build` first.");
  const { decodeText } = await import(new URL("text/decode-text.js", dist));
  const { parseSkillDocument } = await import(new URL("skills/skill-document.js", dist));
  const { lintSkillDocument } = await import(new URL("skills/lint-skill-document.js", dist));
  const rows = readIndex(index);
  const start = performance.now();
  const results = rows.map((row) => loadRow(row, directory, { decodeText, parseSkillDocument }));
  const milliseconds = performance.now() - start;
  report(results, milliseconds);
  const findings = results.flatMap((result) => (result.text === undefined ? [] : compareLint(result, lintSkillDocument)));
  console.table(Object.fromEntries(agreement(findings)));
  if (rest[1] !== undefined) writeFileSync(rest[1], strictTable(findings));
  return results.every((result) => result.sameName && result.sameDescription) ? 0 : 1;
}

function usage(message) {
  console.error(`${message}\nUsage: npm run corpus -- <dir> <index.tsv> [--strict <table.txt>]`);
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

// What the index and the strict check say of one file. The index stops at the first parse fault of a file.
function compareLint({ row, at, text }, lintSkillDocument) {
  const expected = (row.strict_findings ?? "")
    .split(";")
    .filter(Boolean)
    .map((finding) => (finding.startsWith("parse/yaml") ? "parse/yaml" : finding));
  const diagnostics = lintSkillDocument(text, at);
  const codes = diagnostics.filter(({ severity }) => severity === "error").map(({ code }) => findingNames[code] ?? code);
  const isParseFault = (finding) => finding.startsWith("parse/");
  const found = codes.some(isParseFault) ? codes.filter(isParseFault).slice(0, 1) : [...new Set(codes)];
  const others = [
    ...new Set(diagnostics.filter(({ severity }) => severity !== "error").map(({ severity, code }) => `${severity} ${code}`)),
  ];
  return [{ file: `${row.repo}/${row.path}`, isValid: row.strict_valid === "y", expected, found, others }];
}

// Condition by condition: in how many files the index has it, the check has it, and both have.
function agreement(findings) {
  const table = new Map();
  const add = (finding, column) =>
    table.set(finding, { index: 0, lint: 0, both: 0, ...table.get(finding), [column]: (table.get(finding)?.[column] ?? 0) + 1 });
  for (const { isValid, expected, found } of findings) {
    const index = new Set([...expected, ...(isValid ? ["valid"] : [])]);
    const lint = new Set([...found, ...(found.length === 0 ? ["valid"] : [])]);
    for (const finding of index) add(finding, "index");
    for (const finding of lint) add(finding, "lint");
    for (const finding of index) if (lint.has(finding)) add(finding, "both");
  }
  return [...table].sort(([a], [b]) => a.localeCompare(b));
}

function strictTable(findings) {
  const counted = new Map(agreement(findings));
  const none = { index: 0, lint: 0, both: 0 };
  const line = (...cells) =>
    `${cells[0].padEnd(32)}${cells[1].padEnd(32)}${cells
      .slice(2)
      .map((cell) => String(cell).padStart(8))
      .join("")}`;
  const rows = [["-", "valid"], ...Object.entries(findingNames)].map(([code, finding]) => {
    const { index, lint, both } = counted.get(finding) ?? none;
    return line(finding, code, index, lint, both);
  });
  const known = new Set(["valid", ...Object.values(findingNames)]);
  const strange = [...counted]
    .filter(([finding]) => !known.has(finding))
    .map(([finding, { index, lint, both }]) => line(finding, "?", index, lint, both));
  const same = findings.filter(({ expected, found }) => JSON.stringify([...expected].sort()) === JSON.stringify([...found].sort()));
  const beyond = new Map();
  for (const other of findings.flatMap(({ others }) => others)) beyond.set(other, (beyond.get(other) ?? 0) + 1);
  return [
    `${findings.length} files; in ${same.length} the strict check and the index have exactly the same findings.`,
    "",
    line("finding", "code", "index", "check", "both"),
    ...rows,
    ...strange,
    "",
    "Beyond the reference validator, by files:",
    ...[...beyond].sort(([, a], [, b]) => b - a).map(([what, count]) => line(what, "", count)),
    "",
    ...findings
      .filter((one) => !same.includes(one))
      .map(({ file, expected, found }) => `${file}: index ${expected.join(" ")}; check ${found.join(" ")}`),
  ].join("\n");
}

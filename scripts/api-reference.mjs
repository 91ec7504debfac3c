// Writes docs/api/ from the declarations in build/declarations: what programs can import, in the words of the sources. --check: compares only.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "build/declarations");
const target = join(root, "docs/api");

/** The pages by entry point; those of the library are split by the folder of the source. */
const entries = {
  skillhost: "index.d.ts",
  "skillhost/testing": "testing.d.ts",
  "skillhost/adapters/openai": "adapters/openai.d.ts",
  "skillhost/adapters/anthropic": "adapters/anthropic.d.ts",
  "skillhost/adapters/ai-sdk": "adapters/ai-sdk.d.ts",
  "skillhost/adapters/langchain": "adapters/langchain.d.ts",
};
const pages = [
  ["host", "The host", ["host", "skills", "advice"]],
  [
    "sessions",
    "Sessions",
    [
      "session",
      "session/mcp",
      "session/agents",
      "session/clients",
      "session/workspace",
      "session/turns",
      "session/prompts-resources",
      "session/prompt",
      "session/telemetry",
    ],
  ],
  ["calls", "Calls, permissions and hooks", ["session/calls", "session/permissions", "session/hooks", "session/catalog", "session/tools"]],
  ["events", "Events", ["session/history"]],
  ["tools", "Tools, prompts and resources", ["tools", "formats"]],
  ["models", "Models", ["models"]],
  ["mcp", "MCP", ["mcp", "servers"]],
  ["plugins", "Plugins", ["plugin-host"]],
  ["trust", "Trust", ["trust", "packages"]],
  ["base", "Errors, diagnostics and logging", ["base", "io"]],
];

const parsed = new Map();

function read(file) {
  let found = parsed.get(file);
  if (found === undefined) {
    const source = readFileSync(file, "utf8");
    const { program, comments } = parseSync(file, source);
    found = { source, program, comments };
    parsed.set(file, found);
  }
  return found;
}

const resolved = (from, specifier) => {
  const base = join(dirname(from), specifier.replace(/\.(?:ts|js)$/, ""));
  return [`${base}.d.ts`, join(base, "index.d.ts")].find(existsSync);
};

/** The names that a file exports, with the file and name of each declaration. */
function exportsOf(file) {
  const found = new Map();
  for (const node of read(file).program.body) {
    if (node.type === "ExportAllDeclaration") {
      const from = resolved(file, node.source.value);
      if (from !== undefined) for (const [name, place] of exportsOf(from)) found.set(name, place);
    } else if (node.type === "ExportNamedDeclaration" && node.source) {
      const from = resolved(file, node.source.value);
      if (from === undefined) continue;
      const theirs = exportsOf(from);
      for (const { local, exported } of node.specifiers)
        found.set(exported.name, theirs.get(local.name) ?? { file: from, name: local.name });
    } else if (node.type === "ExportNamedDeclaration" && node.declaration) {
      for (const name of declaredNames(node.declaration)) found.set(name, { file, name });
    } else if (node.type === "ExportNamedDeclaration") {
      for (const { local, exported } of node.specifiers) found.set(exported.name, imported(file, local.name) ?? { file, name: local.name });
    }
  }
  return found;
}

function imported(file, name) {
  for (const node of read(file).program.body) {
    if (node.type !== "ImportDeclaration") continue;
    const specifier = node.specifiers.find(({ local }) => local.name === name);
    const from = specifier && resolved(file, node.source.value);
    if (from !== undefined) return exportsOf(from).get(specifier.imported?.name ?? name);
  }
  return undefined;
}

function declaredNames(declaration) {
  return declaration.declarations?.map(({ id }) => id.name) ?? (declaration.id ? [declaration.id.name] : []);
}

/** The comment and the text of a declaration; overloads together. */
function declarationOf({ file, name }) {
  const { source, program, comments } = read(file);
  const nodes = program.body.filter((node) => declaredNames(node.declaration ?? node).includes(name) && node.type !== "ImportDeclaration");
  if (nodes.length === 0) return undefined;
  const docs = nodes.map((node) => {
    const before = comments
      .filter(({ type, end }) => type === "Block" && end <= node.start && source.slice(end, node.start).trim() === "")
      .at(-1);
    return before?.value.startsWith("*") ? toText(before.value) : "";
  });
  const text = nodes.map((node) => source.slice(node.start, node.end).replace(/^export (?:declare )?/, "")).join("\n");
  return { doc: docs.find((doc) => doc !== "") ?? "", text: text.replaceAll("\r\n", "\n") };
}

function toText(comment) {
  return comment
    .replace(/^\*/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim();
}

function pageOf(file) {
  const folder = relative(dist, dirname(file)).replaceAll("\\", "/");
  const fits = pages.flatMap(([page, , folders]) =>
    folders.filter((each) => folder === each || folder.startsWith(`${each}/`)).map((each) => [each.length, page]),
  );
  return fits.sort(([a], [b]) => b - a)[0]?.[1] ?? "base";
}

const undocumented = [];

function section(name, place) {
  const found = declarationOf(place);
  if (found === undefined) throw new Error(`${name} of ${relative(root, place.file)} has no declaration.`);
  if (found.doc === "") undocumented.push(name);
  const fence = found.text.includes("```") ? "````" : "```";
  return `## ${name}\n\n${found.doc === "" ? "" : `${found.doc}\n\n`}${fence}typescript\n${found.text}\n${fence}\n`;
}

function generate() {
  const files = new Map();
  const all = exportsOf(join(dist, entries.skillhost));
  for (const [page, title] of pages) {
    const own = [...all].filter(([, { file }]) => pageOf(file) === page).sort(([a], [b]) => a.localeCompare(b, "en"));
    if (own.length === 0) continue;
    const text = own.map(([name, place]) => section(name, place)).join("\n");
    files.set(`${page}.md`, `# ${title}\n\n\`import { … } from "skillhost"\`. [All pages](README.md)\n\n${text}`);
  }
  for (const [entry, file] of Object.entries(entries).slice(1)) {
    const own = [...exportsOf(join(dist, file))].sort(([a], [b]) => a.localeCompare(b, "en")).filter(([name]) => !all.has(name));
    const text = own.map(([name, place]) => section(name, place)).join("\n");
    files.set(
      `${entry.replace("skillhost/", "").replace("/", "-")}.md`,
      `# ${entry}\n\n\`import { … } from "${entry}"\`. [All pages](README.md)\n\n${text}`,
    );
  }
  const titles = [...files].map(
    ([file, text]) =>
      `- [${/^# (.*)$/m.exec(text)[1]}](${file}): ${[...text.matchAll(/^## (.*)$/gm)]
        .slice(0, 6)
        .map(([, name]) => `\`${name}\``)
        .join(", ")}, …`,
  );
  files.set(
    "README.md",
    `# API reference\n\nWhat programs can import, generated from the declarations of the package by \`npm run api\`.\n\n${titles.join("\n")}\n`,
  );
  return files;
}

const files = generate();
if (undocumented.length > 0) {
  console.error(`These exports have no TSDoc comment: ${undocumented.join(", ")}`);
  process.exitCode = 1;
}
if (process.argv.includes("--check")) {
  const old = [...files]
    .filter(([name, text]) => !existsSync(join(target, name)) || readFileSync(join(target, name), "utf8") !== text)
    .map(([name]) => name);
  const extra = existsSync(target) ? readdirSync(target).filter((name) => !files.has(name)) : [];
  if (old.length + extra.length > 0) {
    console.error(`docs/api is not that of the sources: ${[...old, ...extra].join(", ")}. Run "npm run build" and "npm run api".`);
    process.exitCode = 1;
  }
} else {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const [name, text] of files) writeFileSync(join(target, name), text);
}

// Makes dist/inspector, the page of the inspector, of the sources in inspector/. What it imports becomes part of it, so that
// users install none of it. The form and the editor of arguments are files of their own, which the page loads when a tool is opened.
//
//   node scripts/bundle-inspector.mjs [--out <dir>]
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: given } = parseArgs({ options: { out: { type: "string" } } });
const out = given.out ?? join(root, "dist/inspector");
const mostCompressedBytes = 260_000;

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const file of ["index.html", "inspector.css"]) cpSync(join(root, "inspector", file), join(out, file));
const chunks = await bundle();
const names = chunks.flatMap((chunk) => Object.keys(chunk.modules)).flatMap((id) => installedName(id) ?? []);
writeFileSync(join(out, "third-party-licenses.txt"), licencesOf([...new Set(names)].sort()));
checkSize();

async function bundle() {
  const building = await rolldown({
    platform: "browser",
    onLog: reportLog,
    input: { inspector: join(root, "inspector/main.tsx") },
    tsconfig: false,
    resolve: {
      alias: {
        react: join(root, "node_modules/preact/compat/dist/compat.mjs"),
        "react-dom": join(root, "node_modules/preact/compat/dist/compat.mjs"),
        "react/jsx-runtime": join(root, "node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs"),
      },
    },
    transform: {
      target: "es2022",
      define: { "process.env.NODE_ENV": '"production"' },
      jsx: { runtime: "automatic", importSource: "preact" },
    },
  });
  const { output } = await building.write({
    dir: out,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    minify: true,
    comments: false,
  });
  await building.close();
  return output.filter((file) => file.type === "chunk");
}

function reportLog(level, log, handle) {
  // Directives of React's servers mean nothing here.
  if (log.code === "MODULE_LEVEL_DIRECTIVE") return;
  // A part of @rjsf/core that only its tests use, and that is left out.
  if (log.code === "UNRESOLVED_IMPORT" && log.message.includes("@rjsf/validator-ajv8")) return;
  // The page has no other place to load it from.
  handle(log.code === "UNRESOLVED_IMPORT" ? "error" : level, log);
}

function checkSize() {
  const sizes = readdirSync(out)
    .filter((file) => /\.(?:js|css|html)$/.test(file))
    .map((file) => ({ file, bytes: gzipSync(readFileSync(join(out, file)), { level: 9 }).length }));
  const all = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  console.log(`inspector: ${(all / 1000).toFixed(1)} kB compressed, ${mostCompressedBytes / 1000} at most`);
  for (const { file, bytes } of sizes) console.log(`  ${file} ${(bytes / 1000).toFixed(1)}`);
  if (all > mostCompressedBytes) throw new Error(`The page of the inspector is larger than ${mostCompressedBytes / 1000} kB compressed.`);
}

/** For packages that name the licence without its text. */
function mitLicence(author) {
  const name = typeof author === "string" ? author : (author?.name ?? "the authors");
  const own = readFileSync(join(root, "node_modules/preact/LICENSE"), "utf8");
  return `Copyright (c) ${name}\n\n${own.slice(own.indexOf("Permission is hereby granted")).trim()}`;
}

function installedName(file) {
  return /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^.\\/][^\\/]*)/.exec(file)?.[1].replaceAll("\\", "/");
}

function licencesOf(packages) {
  const notices = packages.map((name) => {
    const folder = join(root, "node_modules", name);
    const { version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined && license !== "MIT")
      throw new Error(`${name} has no licence file, so it cannot become part of dist/inspector.`);
    const text = file === undefined ? mitLicence(author) : readFileSync(join(folder, file), "utf8").trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return `These packages are part of the files in this folder.\n\n${notices.join(`\n${"-".repeat(80)}\n\n`)}`;
}

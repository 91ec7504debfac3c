// Makes dist/, which is what users get, of the compiled sources in build/dist: few files, so that a start reads little.
// What a command does not need at once stays in files of its own, as the sources import it: `await import("…")`.
//
//   node scripts/bundle.mjs [--compiled <dir>] [--dist <dir>]
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { basename, extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parseSync, visitorKeys } from "oxc-parser";
import { rolldown } from "rolldown";
import { minifySync } from "rolldown/experimental";
import { copyDeclarations } from "./copy-declarations.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: given } = parseArgs({ options: { compiled: { type: "string" }, dist: { type: "string" } } });
const compiled = given.compiled ?? join(root, "build/dist");
const dist = given.dist ?? join(root, "dist");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const plugins = ["language-server", "library-docs", "nats", "python-tools", "workspace-tools"];
const ofPlugins = Object.fromEntries(plugins.map((name) => [`plugins/${name}/plugin`, `plugins/${name}/plugin.js`]));
const adapters = Object.fromEntries(
  ["ai-sdk", "anthropic", "langchain", "openai"].map((name) => [`adapters/${name}`, `adapters/${name}.js`]),
);
/** What the processes of tests start with. */
const ofTests = Object.fromEntries(
  ["run-test-files", "register-test-hooks", "test-hooks", "stored-call-tests"].map((name) => [
    `cli/test-run/${name}`,
    `cli/test-run/${name}.js`,
  ]),
);
const entries = {
  index: "index.js",
  define: "define.js",
  testing: "testing.js",
  "cli/bin": "cli/bin.js",
  "session/database/sql-worker": "session/database/sql-worker.js",
  "skills/isolation/child-main": "skills/isolation/child-main.js",
  ...ofTests,
  ...adapters,
  ...ofPlugins,
};

/**
 * Npm's resolver and fetcher of packages, and the packages that only they need. As packages they would bring node-gyp and its HTTP client, 700 files
 * for install scripts, which are never run.
 */
const npmLibraries = [
  "@gar/promise-retry",
  "@isaacs/string-locale-compare",
  "@npmcli/arborist",
  "@npmcli/installed-package-contents",
  "@npmcli/map-workspaces",
  "@npmcli/metavuln-calculator",
  "@npmcli/name-from-folder",
  "@npmcli/node-gyp",
  "@npmcli/promise-spawn",
  "@npmcli/query",
  "@npmcli/redact",
  "bin-links",
  "cmd-shim",
  "common-ancestor-path",
  "isexe",
  "json-parse-even-better-errors",
  "json-stringify-nice",
  "just-diff",
  "just-diff-apply",
  "npm-bundled",
  "npm-install-checks",
  "npm-normalize-package-bin",
  "npm-pick-manifest",
  "pacote",
  "parse-conflict-json",
  "proc-log",
  "proggy",
  "promise-all-reject-late",
  "promise-call-limit",
  "read-cmd-shim",
  "signal-exit",
  "treeverse",
  "walk-up-path",
  "which",
  "write-file-atomic",
];

/** Those that are imported, by their names in npm-libraries.cjs. */
const npmExports = { "@npmcli/arborist": "Arborist", pacote: "pacote" };

/**
 * What packages import and never call here. npm's libraries: the runner of install scripts, and CSS selectors for packages. The MCP SDK: ajv, which is
 * the validator of those who bring none.
 */
const absent = ["@npmcli/run-script", "postcss-selector-parser"];
const absentFile = /[\\/]@modelcontextprotocol[\\/].*[\\/]ajvProvider-[\w-]+\.mjs$/;

/**
 * Packages that become part of dist/, with all that they import: users install and read far fewer files. Those with native code stay
 * packages, as do most of npm's own libraries, which would be half of the tarball, and `zod`, which skills import.
 */
const inlined = [
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/core",
  "@modelcontextprotocol/server",
  "commander",
  "diff",
  "dom-serializer",
  "domelementtype",
  "domhandler",
  "domutils",
  "entities",
  "eventsource",
  "eventsource-parser",
  "fdir",
  "get-tsconfig",
  "htmlparser2",
  "jose",
  "jsonc-parser",
  "picomatch",
  "pkce-challenge",
  "re2js",
  "resolve-pkg-maps",
  "safe-stable-stringify",
  "semver",
  "smol-toml",
  "tinyglobby",
  "vscode-jsonrpc",
  "ws",
  "yaml",
];

/**
 * Inlined packages that most starts never call. Each is a file of its own, which the first call of one of its functions loads. They are
 * CommonJS, because only `require` loads at once without a race with an `import` of the same module.
 */
const lazy = ["get-tsconfig", "re2js", "semver", "smol-toml", "tinyglobby", "yaml"];
/** Modules of Node.js of which the same is true. Together they take a command as long as a third of its own code. */
const lazyBuiltins = [
  "node:child_process",
  "node:crypto",
  "node:dns",
  "node:inspector",
  "node:net",
  "node:readline",
  "node:stream/consumers",
  "node:worker_threads",
];
const lazyPrefix = "\0lazy:";
const absentPrefix = "\0absent:";
const npmPrefix = "\0npm:";

/** What is loaded together is one file: each holds what its modules import, directly or not, and no file before it has. */
const files = [
  { name: "define-tool", of: ["tools/define/define-tool.js"] },
  { name: "define", of: ["define.js"] },
  { name: "library", of: ["index.js"] },
  { name: "command-line", of: ["cli/process-io.js", "cli/main.js", "cli/config.js", "cli/command-log.js", "cli/project-consent.js"] },
  { name: "test-hooks", of: ["cli/test-run/test-hooks.js"] },
  { name: "host", of: ["host/create-host.js", "cli/commands/call.js", "cli/commands/list.js"] },
];

rmSync(dist, { recursive: true, force: true });
if (given.compiled === undefined) completeBuild();
for (const plugin of plugins) copyAssets(plugin, join(dist, "plugins"));
cpSync(join(root, "node_modules/ajv/dist/refs"), join(dist, "chunks/json-schema"), {
  recursive: true,
  filter: (file) => !/\.(?:js|ts|map)$/.test(file),
});
const output = [
  ...(await bundle()),
  ...(await Promise.all([...lazy, "ajv-formats/dist/formats.js"].map(bundleLazy))).flat(),
  ...(await bundleNpm()),
];
for (const file of output) shorten(file);
assertInstalled(output);
const included = output.flatMap((file) => Object.keys(file.modules)).flatMap((id) => installedName(id) ?? []);
writeFileSync(join(dist, "third-party-licenses.txt"), licencesOf([...new Set(included)].sort()));
const typed = Object.values(manifest.exports).flatMap(({ types }) => types?.replace(/^\.\/dist\//, "") ?? []);
copyDeclarations(compiled, dist, typed);
// The reference of the API names the folders of the modules.
if (given.compiled === undefined) copyDeclarations(compiled, join(root, "build/declarations"), typed, { byModule: true });
// npm does this when it installs the package; here it is for `dist/` as it lies.
chmodSync(join(dist, manifest.bin.skillhost.replace(/^dist\//, "")), 0o755);

/** Makes build/ a package like the one that is shipped, but for its many files: for benchmarks and scripts that look inside. */
function completeBuild() {
  cpSync(join(root, "package.json"), join(root, "build/package.json"));
  for (const plugin of plugins) copyAssets(plugin, join(compiled, "plugins"));
}

/** What a plugin reads at run time beside its code. */
function copyAssets(plugin, to) {
  const isAsset = (path) => ![".ts", ".json", ".pyc"].includes(extname(path)) && !path.endsWith("__pycache__");
  cpSync(join(root, "plugins", plugin), join(to, plugin), { recursive: true, filter: isAsset });
}

async function bundle() {
  const building = await rolldown({
    platform: "node",
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(compiled, file)])),
    // Its CommonJS form hides its imports from bundlers.
    resolve: { alias: { "jsonc-parser": join(root, "node_modules/jsonc-parser/lib/esm/main.js") } },
    external: (id, importer) =>
      isPackage(id) && !isLazyBuiltin(id, importer) && ![...inlined, ...Object.keys(npmExports)].includes(packageOf(id)),
    treeshake: { moduleSideEffects: hasSideEffects },
    plugins: [lazyPackages(), absentPackages(), npmPackages(), requiredFiles()],
    preserveEntrySignatures: "allow-extension",
    checks: { ineffectiveDynamicImport: false },
  });
  const { output } = await building.write({
    dir: dist,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: ({ name }) => (name.startsWith("plugins/") ? "[name].js" : "chunks/[name].js"),
    comments: { legal: true, annotation: true, jsdoc: false },
    minifyInternalExports: false,
    charset: "ascii",
    codeSplitting: { groups: [{ name: chunkNames(), debugName: "files" }], includeDependenciesRecursively: false },
  });
  await building.close();
  const chunks = output.filter((file) => file.type === "chunk");
  return skipForwarding(chunks);
}

/** Lets `import("…")` name the file that has the code, instead of a file that only exports some of its names again. */
function skipForwarding(chunks) {
  const targets = new Map();
  for (const { code, fileName, isEntry } of chunks) {
    const [, names, target] = /^export \{ ([\w$, ]+) \} from "\.\/([^"]+)";\s*$/.exec(code) ?? [];
    if (!isEntry && target !== undefined && !/ as /.test(names)) targets.set(basename(fileName), target);
  }
  for (const chunk of chunks) {
    const code = chunk.code.replace(/import\("(\.[^"]*\/)([^"/]+)"\)/g, (text, folder, file) =>
      targets.has(file) ? `import("${folder}${targets.get(file)}")` : text,
    );
    if (code !== chunk.code) writeFileSync(join(dist, chunk.fileName), code);
  }
  const isForwarding = ({ fileName }) => fileName.startsWith("chunks/") && targets.has(basename(fileName));
  for (const { fileName } of chunks.filter(isForwarding)) rmSync(join(dist, fileName));
  return chunks.filter((chunk) => !isForwarding(chunk));
}

async function bundleLazy(name) {
  return bundleCommonJs(packageOf(name), createRequire(import.meta.url).resolve(name));
}

/** Npm's libraries are CommonJS that asks for its place, and share their modules. */
async function bundleNpm() {
  const entry = `${npmPrefix}entry`;
  const code = Object.entries(npmExports).map(([name, key]) => `exports.${key} = require("${name}");`);
  return bundleCommonJs("npm-libraries", entry, {
    external: (id) => isPackage(id) && ![...npmLibraries, ...absent].includes(packageOf(id)),
    plugins: [
      absentPackages(),
      {
        name: "npm-entry",
        resolveId: (id, importer) => (id === entry ? id : importer === entry ? createRequire(import.meta.url).resolve(id) : undefined),
        load: (id) => (id === entry ? { code: code.join("\n"), moduleType: "js" } : undefined),
      },
    ],
  });
}

async function bundleCommonJs(name, entry, options) {
  const building = await rolldown({ platform: "node", input: { [name]: entry }, ...options });
  const { output } = await building.write({
    dir: dist,
    format: "cjs",
    entryFileNames: "chunks/[name].cjs",
    comments: { legal: true },
  });
  await building.close();
  return output;
}

function npmPackages() {
  return {
    name: "npm-packages",
    resolveId: { filter: { id: new RegExp(`^(?:${Object.keys(npmExports).join("|")})$`) }, handler: (id) => npmPrefix + id },
    load: {
      filter: { id: new RegExp(`^${npmPrefix}`) },
      handler: (id) => `import { createRequire } from "node:module";
export default createRequire(import.meta.url)("./npm-libraries.cjs").${npmExports[id.slice(npmPrefix.length)]};`,
    },
  };
}

function lazyPackages() {
  return {
    name: "lazy-packages",
    resolveId: {
      filter: { id: new RegExp(`^(?:${[...lazy, ...lazyBuiltins].join("|")})$`) },
      handler: (id, importer) => (isBuiltin(id) && !isLazyBuiltin(id, importer) ? undefined : lazyPrefix + id),
    },
    load: { filter: { id: new RegExp(`^${lazyPrefix}`) }, handler: (id) => lazyModule(id.slice(lazyPrefix.length)) },
  };
}

/**
 * The child of an isolated skill and the thread of a database need at once what their port is, and a child its network. Packages import more than functions, and commander's are
 * those of child_process for subcommands that are programs.
 */
function isLazyBuiltin(id, importer = "") {
  if (installedName(importer) === "commander") return id === "node:child_process";
  const isChild = ["skills/isolation/child-", "session/database/sql-worker"].some((file) => importer.startsWith(join(compiled, file)));
  return lazyBuiltins.includes(id) && importer.startsWith(compiled) && !isChild;
}

/** The module that takes the place of another: its functions and classes load that one when they are used. */
async function lazyModule(name) {
  const file = isBuiltin(name) ? name : `./${name}.cjs`;
  const exported = Object.entries(await import(name)).filter(([key, value]) => key !== "default" && typeof value === "function");
  // Those of Node.js can be constructed without being classes, and have properties.
  const isProxy = (value) => isBuiltin(name) || /^class\b/.test(Function.prototype.toString.call(value));
  const declarations = exported.map(([key, value]) =>
    isProxy(value)
      ? `export const ${key} = /* @__PURE__ */ lazily(() => load().${key});`
      : `export function ${key}(...args) { return load().${key}(...args); }`,
  );
  return `import { createRequire } from "node:module";
const require = /* @__PURE__ */ createRequire(import.meta.url);
let loaded;
function load() { return loaded ??= require("${file}"); }
function lazily(find) {
  const proxy = new Proxy(function () {}, {
    apply: (_target, self, args) => Reflect.apply(find(), self, args),
    construct: (_target, args, made) => Reflect.construct(find(), args, made === proxy ? find() : made),
    get: (_target, property) => find()[property],
  });
  return proxy;
}
${declarations.join("\n")}`;
}

/** A call of what is left out is an error with its name. */
function absentPackages() {
  const refusal = (name) => `() { throw new Error(${JSON.stringify(`${name} is not part of skillhost.`)}); }`;
  return {
    name: "absent-packages",
    resolveId: { filter: { id: new RegExp(`^(?:${absent.join("|")})$`) }, handler: (id) => absentPrefix + id },
    load: {
      filter: { id: [new RegExp(`^${absentPrefix}`), absentFile] },
      handler: (id) =>
        id.startsWith(absentPrefix)
          ? `module.exports = function ${refusal(id.slice(absentPrefix.length))};`
          : `export class n { constructor${refusal("The SDK's own validator of schemas")} }`,
    },
  };
}

/** What modules load with \`require\` by the name of a package is in dist/, too. */
function requiredFiles() {
  const replaced = { "ajv-formats/dist/formats.js": "./ajv-formats.cjs", "ajv/dist/refs/": "./json-schema/" };
  return {
    name: "required-files",
    transform: {
      filter: { code: { include: Object.keys(replaced) } },
      handler: (code, id) =>
        installedName(id) === undefined
          ? Object.entries(replaced).reduce(
              (text, [from, to]) => text.replaceAll(`"${from}`, `"${to}`).replaceAll(`\`${from}`, `\`${to}`),
              code,
            )
          : undefined,
    },
  };
}

/**
 * Makes a file shorter. It keeps the names of its functions and classes, which stack traces show, and has a line for each statement and member, which
 * stack traces name. Node.js prints the line of an error that ends a program.
 */
function shorten({ fileName }) {
  const file = join(dist, fileName);
  const { code, errors } = minifySync(file, readFileSync(file, "utf8"), {
    module: fileName.endsWith(".js"),
    compress: false,
    mangle: { keepNames: true },
    codegen: { removeWhitespace: true, asciiOnly: true, legalComments: "inline" },
  });
  if (errors.length > 0) throw new Error(`${fileName}: ${errors[0].message}`);
  writeFileSync(file, inLines(file, code));
}

/** Starts a new line before each statement and each member of a class. */
function inLines(file, code) {
  const { program, errors } = parseSync(file, code, { sourceType: file.endsWith(".cjs") ? "commonjs" : "module" });
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const starts = new Set();
  const open = [program];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const listed = node.type === "SwitchCase" ? node.consequent : node.body;
    if (Array.isArray(listed)) for (const { start } of listed) if (start > 0) starts.add(start);
    for (const key of visitorKeys[node.type] ?? []) open.push(...[node[key]].flat().filter(Boolean));
  }
  const places = [0, ...[...starts].sort((a, b) => a - b)];
  return places.map((start, index) => code.slice(start, places[index + 1])).join("\n");
}

/** Users install the dependencies alone: what was found here because something else of the development brought it is missing there. */
function assertInstalled(output) {
  // An adapter, or the plugin for NATS, is used by programs that have the packages it is for.
  const hasPeers = (fileName) => fileName.startsWith("adapters/") || fileName.startsWith("plugins/nats/");
  const installed = ({ fileName }) => ({ ...manifest.dependencies, ...(hasPeers(fileName) && manifest.peerDependencies) });
  // Its import may fail: then there is another way.
  const isTried = (id) => id === "@anthropic-ai/sandbox-runtime";
  const missing = output.flatMap((file) => {
    const packages = [...file.imports, ...file.dynamicImports.filter((id) => !isTried(id))]
      .filter((id) => isPackage(id) && !isBuiltin(id) && !/\.js$/.test(id))
      .map(packageOf);
    return packages.filter((name) => name !== manifest.name && !Object.hasOwn(installed(file), name));
  });
  if (missing.length > 0) throw new Error(`dist/ imports what is not a dependency: ${[...new Set(missing)].join(", ")}`);
}

/** In which file a module goes. Undefined: what several imports share, or one alone, is a file of its own. */
function chunkNames() {
  const closures = new Map();
  return (id, context) => {
    const isIn = ({ name, of }) => {
      const roots = of.map((file) => join(compiled, file));
      if (!closures.has(name)) closures.set(name, closureOf(roots, context));
      return closures.get(name).has(id);
    };
    return files.find(isIn)?.name ?? pluginChunk(id) ?? packageChunk(id) ?? (id.startsWith(lazyPrefix) ? "lazy-packages" : null);
  };
}

/** The modules of a plugin lie beside what they read at run time. */
function pluginChunk(id) {
  const plugin = plugins.find((name) => id.startsWith(join(compiled, "plugins", name, sep)));
  return plugin && `plugins/${plugin}/modules`;
}

/** The SDK of MCP is in files of its own, which hold no module of this package. */
function packageChunk(id) {
  const sdk = /^@modelcontextprotocol\/(.*)/.exec(installedName(id) ?? "");
  return sdk ? `mcp-sdk-${sdk[1]}` : undefined;
}

function closureOf(ids, context, found = new Set()) {
  for (const id of ids) {
    if (found.has(id)) continue;
    found.add(id);
    closureOf(context.getModuleInfo(id)?.importedIds ?? [], context, found);
  }
  return found;
}

/** What a module does when it is loaded is what it is imported for, in this package: `warm-up.js`. Others say it in their package.json. */
function hasSideEffects(id, isExternalModule) {
  if (isExternalModule) return false;
  return installedName(id) === undefined ? true : undefined;
}

function isPackage(id) {
  return /^(?:node:|@?[a-z])/i.test(id) && !/^[a-z]:[\\/]/i.test(id);
}

function packageOf(specifier) {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function installedName(file) {
  return /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^.\\/][^\\/]*)/.exec(file)?.[1].replaceAll("\\", "/");
}

function licencesOf(names) {
  const notices = names.map((name) => {
    const folder = join(root, "node_modules", name);
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} has no licence file, so it cannot become part of dist/.`);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return `These packages are part of the files in this folder.\n\n${notices.join(`\n${"-".repeat(80)}\n\n`)}`;
}

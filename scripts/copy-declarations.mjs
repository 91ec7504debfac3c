import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { parseSync, visitorKeys } from "oxc-parser";

/**
 * Writes the declarations of some modules, and those that these name, from one folder to another: the modules at the same places, and what they
 * import in one file, or in one for each folder of `plugins`; `byModule`: each module at its place. What no user of the modules can name is left
 * out: other declarations of the same files, and constructors of classes that are exported as types.
 */
export function copyDeclarations(from, to, modules, { byModule = false } = {}) {
  const files = new Map();
  const open = (name) => {
    if (!files.has(name)) files.set(name, readDeclarations(join(from, name)));
    return files.get(name);
  };
  for (const module of modules) need(declarationsOf(module), "*", true);
  const entries = new Set(modules.map(declarationsOf));
  const placeOf = (name) => (byModule || entries.has(name) ? name : posix.join(/^plugins\/[^/]+\/|/.exec(name)[0], "declarations.d.ts"));
  for (const [place, parts] of grouped(files, placeOf)) {
    mkdirSync(dirname(join(to, place)), { recursive: true });
    writeFileSync(join(to, place), printAll(place, parts, placeOf));
  }

  /** Marks an export of a file, and all that its declaration names. `isValue`: users can construct it, if it is a class. */
  function need(name, exported, isValue) {
    const file = open(name);
    const found = [...file.exports].filter(([key]) => exported === "*" || key === exported);
    for (const [key, { local, source, imported, isType }] of found) {
      file.kept.add(`export ${key}`);
      if (source === undefined) needLocal(name, local, isValue && !isType);
      else if (source.startsWith(".")) need(resolve(name, source), imported, isValue && !isType);
    }
    if (exported !== "*" && found.length > 0) return;
    for (const { source, isType } of file.stars) {
      file.kept.add(`star ${source}`);
      need(resolve(name, source), exported, isValue && !isType);
    }
  }

  function needLocal(name, local, isValue) {
    const file = open(name);
    const mark = `${isValue ? "value" : "type"} ${local}`;
    if (file.kept.has(mark)) return;
    file.kept.add(mark);
    const imported = file.imports.get(local);
    if (imported?.source.startsWith(".")) need(resolve(name, imported.source), imported.imported, isValue);
    for (const statement of file.declared.get(local) ?? []) {
      const { names, base, modules: whole } = namesIn(statement, isValue);
      for (const each of names) if (file.declared.has(each) || file.imports.has(each)) needLocal(name, each, isValue && each === base);
      for (const source of whole) need(resolve(name, source), "*", false);
    }
  }
}

function readDeclarations(path) {
  const text = readFileSync(path, "utf8");
  const { program, errors } = parseSync(path, text, { astType: "ts", lang: "dts" });
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
  const file = { text, body: program.body, kept: new Set(), imports: new Map(), exports: new Map(), stars: [], declared: new Map() };
  for (const statement of program.body) {
    const isType = statement.importKind === "type" || statement.exportKind === "type";
    const source = statement.source?.value;
    if (statement.type === "ImportDeclaration") {
      for (const { local, imported } of statement.specifiers) file.imports.set(local.name, { source, imported: imported?.name ?? "*" });
    } else if (statement.type === "ExportAllDeclaration") {
      file.stars.push({ source, isType });
    } else if (statement.specifiers?.length > 0) {
      for (const { local, exported, exportKind } of statement.specifiers)
        file.exports.set(exported.name, { local: local.name, source, imported: local.name, isType: isType || exportKind === "type" });
    } else {
      const declaration = statement.declaration ?? statement;
      const ids = declaration.declarations?.map(({ id }) => id) ?? [declaration.id];
      for (const { name } of ids.filter(Boolean)) {
        file.declared.set(name, [...(file.declared.get(name) ?? []), declaration]);
        // The compiler writes `export` before a declaration of a type, too.
        if (statement.declaration) file.exports.set(statement.type === "ExportDefaultDeclaration" ? "default" : name, { local: name });
      }
    }
  }
  return file;
}

/** The names that a declaration refers to: too many rather than too few. */
function namesIn(declaration, isValue) {
  const names = new Set();
  const modules = [];
  const open = [declaration];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (isConstructor(node) && !isValue) continue;
    if (node.type === "Identifier") names.add(node.name);
    if (node.type === "TSImportType" && node.source.value.startsWith(".")) modules.push(node.source.value);
    for (const key of visitorKeys[node.type] ?? []) {
      if (key === "key" && !node.computed) continue;
      open.push(...[node[key]].flat().filter(Boolean));
    }
  }
  return { names, modules, base: declaration.superClass?.name };
}

function isConstructor(node) {
  return node.kind === "constructor" && /^(?:TSAbstract)?MethodDefinition$/.test(node.type);
}

function grouped(files, placeOf) {
  const groups = new Map();
  for (const part of files) {
    const place = placeOf(part[0]);
    groups.set(place, [...(groups.get(place) ?? []), part]);
  }
  return groups;
}

/** The text of a file that holds the declarations of these modules. What it imports is named once, and no name twice. */
function printAll(place, parts, placeOf) {
  const imports = new Map();
  const declared = new Map();
  const texts = parts.map(([name, file]) => {
    for (const local of file.declared.keys()) if (isKept(file, local)) claim(declared, local, name, place);
    const target = (source) => (source.startsWith(".") ? placeOf(resolve(name, source)) : source);
    return print(file, (statement) => {
      const source = statement.source?.value;
      const isHere = ({ local }) => target(source ?? file.imports.get(local.name)?.source ?? "") === place;
      const specifiers = statement.specifiers?.filter((each) => !isHere(each) || isRenamed(each, place));
      if (statement.specifiers?.length > 0 && specifiers.length === 0) return undefined;
      if (source === undefined) return printStatement({ ...statement, specifiers }, file);
      const from = target(source);
      if (statement.type !== "ImportDeclaration") return printStatement(statement, file, specifierOf(place, from));
      for (const { local, imported } of statement.specifiers.filter((each) => isKept(file, each.local.name))) {
        claim(declared, local.name, `${from} ${imported?.name}`, place);
        const text = imported.name === local.name ? local.name : `${imported.name} as ${local.name}`;
        imports.set(from, (imports.get(from) ?? new Set()).add(text));
      }
      return undefined;
    });
  });
  const head = [...imports].map(([from, names]) => `import { ${[...names].sort().join(", ")} } from "${specifierOf(place, from)}";\n`);
  const all = head.join("") + texts.filter(Boolean).join("\n");
  return /^export \{/m.test(all) ? `${all}\n` : `${all}\nexport {};\n`;
}

/** Modules of one file share its names. */
function claim(declared, name, owner, place) {
  const other = declared.get(name) ?? owner;
  if (other !== owner) throw new Error(`${place}: "${name}" is declared by ${other} and by ${owner}. Rename one of them.`);
  declared.set(name, owner);
}

/** What a module takes from another of the same file is there already, unless it has another name in each. */
function isRenamed({ imported, exported, local }, place) {
  if ((imported ?? exported).name !== local.name)
    throw new Error(`${place}: "${local.name}" has two names. Give it the same name in both modules.`);
  return false;
}

function specifierOf(place, target) {
  if (!target.endsWith(".d.ts")) return target;
  const path = posix.relative(posix.dirname(place), target).replace(/\.d\.ts$/, ".ts");
  return path.startsWith(".") ? path : `./${path}`;
}

function print(file, printOne) {
  const parts = [];
  let end = 0;
  for (const statement of file.body) {
    const comment = file.text.slice(end, statement.start);
    const text = printOne(statement);
    if (text !== undefined) parts.push(comment + text);
    end = statement.end;
  }
  return parts.join("").trim();
}

function isKept(file, name) {
  return file.kept.has(`type ${name}`) || file.kept.has(`value ${name}`);
}

function printStatement(statement, file, target) {
  const { source, specifiers } = statement;
  const from = target === undefined ? "" : ` from "${target}"`;
  if (statement.type === "ExportAllDeclaration") return file.kept.has(`star ${source.value}`) ? `export *${from};` : undefined;
  if (specifiers?.length > 0) {
    const kept = specifiers.filter(({ exported }) => file.kept.has(`export ${exported.name}`));
    if (kept.length === 0) return undefined;
    return `export${statement.exportKind === "type" ? " type" : ""} { ${kept.map((each) => slice(each, file)).join(", ")} }${from};`;
  }
  const declaration = statement.declaration ?? statement;
  const names = (declaration.declarations?.map(({ id }) => id) ?? [declaration.id]).filter(Boolean).map(({ name }) => name);
  if (!names.some((name) => isKept(file, name))) return undefined;
  if (names.some((name) => file.kept.has(`value ${name}`)) || declaration.type !== "ClassDeclaration") return slice(statement, file);
  const hidden = declaration.body.body.filter(isConstructor);
  let text = "";
  let at = statement.start;
  for (const { start, end } of hidden) {
    text += withoutLastComment(file.text.slice(at, start));
    at = end;
  }
  return text + file.text.slice(at, statement.end);
}

function slice({ start, end }, { text }) {
  return text.slice(start, end);
}

function withoutLastComment(text) {
  return text.replace(/\s*(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*)?$/, "");
}

/** Relative imports in declarations are as in the sources: with `.ts`. */
function resolve(file, specifier) {
  return declarationsOf(posix.join(posix.dirname(file), specifier));
}

function declarationsOf(module) {
  return module.replace(/(?<!\.d)\.[jt]s$/, ".d.ts");
}

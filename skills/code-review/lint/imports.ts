import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { isFunction, type Node } from "./ast.ts";
import { returnsPromise } from "./facts.ts";
import { maxFileBytes } from "./files.ts";
import { isSurelyShallow } from "./nesting.ts";
import { type AsyncImports, parseUnit, type Unit } from "./unit.ts";

const candidates = ["", ".ts", ".tsx", ".mts", ".js", ".mjs", ".jsx", "/index.ts", "/index.js"];

/** Answers which names of a project's own modules are async functions. Each module is read once, within the root. */
export class AsyncExports {
  readonly #root: string;
  readonly #known = new Map<string, ReadonlySet<string>>();

  constructor(root: string) {
    this.#root = realpathSync(root);
  }

  from(file: string): AsyncImports {
    return (specifier, name) => {
      if (!specifier.startsWith("./") && !specifier.startsWith("../")) return false;
      const target = this.#locate(resolve(dirname(file), specifier));
      return target !== undefined && this.#exportsOf(target).has(name);
    };
  }

  #locate(base: string): string | undefined {
    // TypeScript lets a specifier end in .js and mean the .ts beside it.
    const bases = [base, base.replace(/\.([cm]?)js$/, ".$1ts")];
    for (const candidate of bases.flatMap((path) => candidates.map((ending) => path + ending))) {
      if (!/\.[cm]?[jt]sx?$/.test(candidate) || !existsSync(candidate)) continue;
      const real = realpathSync(candidate);
      return relative(this.#root, real).startsWith("..") ? undefined : real;
    }
    return undefined;
  }

  #exportsOf(file: string): ReadonlySet<string> {
    const known = this.#known.get(file) ?? readExports(file);
    this.#known.set(file, known);
    return known;
  }
}

function readExports(file: string): ReadonlySet<string> {
  try {
    const text = readFileSync(file, "utf8");
    if (text.length > maxFileBytes || !isSurelyShallow(text)) return new Set();
    const { unit } = parseUnit(file.split(sep).join("/"), text);
    return new Set(unit ? asyncExports(unit) : []);
  } catch {
    // A module that cannot be read or analysed tells nothing about its exports.
    return new Set();
  }
}

function* asyncExports(unit: Unit): Generator<string> {
  for (const declaration of unit.tree.all("ExportNamedDeclaration")) {
    for (const { name, value } of definitionsIn(declaration.declaration)) if (isFunction(value) && returnsPromise(value)) yield name;
    for (const { local, exported } of declaration.source ? [] : declaration.specifiers) {
      const definition = unit.scopes.resolve(local)?.definitions[0];
      const value = definition?.type === "VariableDeclarator" ? definition.init : definition;
      if (exported.type === "Identifier" && isFunction(value) && returnsPromise(value)) yield exported.name;
    }
  }
  for (const { declaration } of unit.tree.all("ExportDefaultDeclaration"))
    if (isFunction(declaration) && returnsPromise(declaration)) yield "default";
}

function definitionsIn(declaration: Node | null): { name: string; value: Node | null }[] {
  if (declaration?.type === "FunctionDeclaration") return [{ name: declaration.id?.name ?? "", value: declaration }];
  if (declaration?.type !== "VariableDeclaration") return [];
  return declaration.declarations.flatMap((d) => (d.id.type === "Identifier" ? [{ name: d.id.name, value: d.init }] : []));
}

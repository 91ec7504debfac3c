import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseSync } from "oxc-parser";

/** The fields and methods of an interface, including those it inherits from interfaces of the same file or of imported ones. */
export function fieldsOf(file: string, name: string): readonly string[] {
  const { body } = parseSync(file, readFileSync(file, "utf8")).program;
  for (const statement of body) {
    const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declared?.type !== "TSInterfaceDeclaration" || declared.id.name !== name) continue;
    const own = declared.body.body.flatMap((member) =>
      (member.type === "TSPropertySignature" || member.type === "TSMethodSignature") && member.key.type === "Identifier"
        ? [member.key.name]
        : [],
    );
    const others = declared.extends.flatMap(({ expression, typeArguments }) => inherited(file, expression, typeArguments));
    return [...own, ...others];
  }
  const from = importOf(body, name);
  if (from === undefined) throw new Error(`${file} neither declares nor imports ${name}.`);
  return fieldsOf(resolve(dirname(file), from), name);
}

type Body = ReturnType<typeof parseSync>["program"]["body"];

function inherited(file: string, expression: unknown, typeArguments: unknown): readonly string[] {
  const base = nameOf(expression);
  if (base !== "Omit") return fieldsOf(file, base);
  const [of, keys] = (typeArguments as { params: readonly unknown[] }).params;
  const left = new Set(JSON.stringify(keys).match(/(?<="value":")[^"]+/g) ?? []);
  return fieldsOf(file, nameOf((of as { typeName: unknown }).typeName)).filter((field) => !left.has(field));
}

function nameOf(node: unknown): string {
  const { name } = node as { readonly name?: unknown };
  if (typeof name !== "string") throw new Error("Only plain names of interfaces are understood here.");
  return name;
}

function importOf(body: Body, name: string): string | undefined {
  for (const statement of body)
    if (statement.type === "ImportDeclaration" && statement.specifiers.some(({ local }) => local.name === name))
      return statement.source.value;
  return undefined;
}

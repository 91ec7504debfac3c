import { existsSync, readdirSync } from "node:fs";
import { isBuiltin } from "node:module";
import { extname, join, relative } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { parseModule } from "../formats/modules/module-source.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import { readFileBytes, readTextFile } from "../io/read-bounded.ts";
import { moduleExtensions } from "../skills/load/tool-entries.ts";
import { findPackageSkills } from "../skills/store/package-skills.ts";
import { isInert } from "../trust/checked-folder.ts";
import { digestFolder, signatureFileName } from "../trust/folder-digests.ts";
import { parseSignature } from "../trust/skill-signature.ts";
import type { UnpackedTarball } from "./inspect-tarball.ts";
import { findSecret, type PackOptions } from "./packed-files.ts";
import type { ReadSkill } from "./read-skill-folder.ts";

export interface Packed {
  readonly source: string;
  /** The skill folders in it. */
  readonly folders: readonly string[];
  readonly skills: readonly ReadSkill[];
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly unpacked: UnpackedTarball;
}

/** Checks a packed package from the point of view of its installation. */
export async function checkPacked(
  packed: Packed,
  { reader, signal }: Pick<PackOptions, "reader" | "signal">,
): Promise<readonly Diagnostic[]> {
  const { source, folders, skills, unpacked } = packed;
  const found = new Set(findPackageSkills(unpacked.folder, packed.manifest).folders.map((folder) => relative(unpacked.folder, folder)));
  const diagnostics = [...checkFiles(packed), ...checkManifest(packed), ...checkImports(packed)];
  for (const [index, folder] of folders.entries()) {
    const path = relative(source, folder);
    const file = folder;
    if (!found.has(path)) {
      const message = 'This skill is not in the tarball. Add its folder to "files" in package.json, and check .npmignore and .gitignore.';
      diagnostics.push({ severity: "error", code: "PACK_SKILL_MISSING", file, message });
      continue;
    }
    const read = await reader.read(join(unpacked.folder, path), signal);
    const lost = "name" in read ? Object.keys(skills[index]?.tools ?? {}).filter((tool) => read.tools[tool] === undefined) : [];
    if (!("name" in read) || lost.length > 0) {
      const what = lost.length > 0 ? `its tools ${lost.join(", ")}` : "the skill";
      diagnostics.push({
        severity: "error",
        code: "PACK_SKILL_BROKEN",
        file,
        message: `${what} will not load from the tarball, because a required file is not packed.`,
      });
    }
    diagnostics.push(...checkSigned(folder, join(unpacked.folder, path)));
  }
  return diagnostics;
}

function checkFiles({ source, unpacked }: Packed): readonly Diagnostic[] {
  return unpacked.files.flatMap(({ path }): readonly Diagnostic[] => {
    const read = readFileBytes(join(unpacked.folder, path), 64 * 1024 * 1024);
    const secret = read.ok ? findSecret(path, read.bytes) : undefined;
    const file = join(source, path);
    if (secret !== undefined) {
      return [
        {
          severity: "error",
          code: "PACK_SECRET",
          file,
          message: `This file would be published, but ${secret}. Remove it, or exclude it with .npmignore.`,
        },
      ];
    }
    return [];
  });
}

function checkManifest({ source, folders, skills, manifest, unpacked }: Packed): readonly Diagnostic[] {
  const file = join(source, "package.json");
  const advise = (code: string, message: string): Diagnostic => ({ severity: "warning", code, file, message });
  const bundled = manifest["bundleDependencies"] ?? manifest["bundledDependencies"];
  return [
    ...(existsSync(join(unpacked.folder, "node_modules")) && bundled === undefined
      ? [{ ...advise("PACK_NODE_MODULES", 'node_modules would be packed. Remove it from "files".'), severity: "error" } as const]
      : []),
    ...(readdirSync(unpacked.folder).some((name) => /^readme(\.|$)/i.test(name))
      ? []
      : [
          advise(
            "PACK_README",
            "There is no README, so the package's page on the registry will be empty. Write one for people; SKILL.md is for models.",
          ),
        ]),
    ...(manifest["license"] === undefined
      ? [advise("PACK_LICENSE", 'It has no "license", so others may not use it. Add one, such as "MIT".')]
      : []),
    ...(typeof manifest["description"] === "string"
      ? []
      : [advise("PACK_DESCRIPTION", 'It has no "description", so people will not find it. Add one.')]),
    ...skills.flatMap(({ name, version }) =>
      folders.includes(source) && version !== undefined && version !== manifest["version"]
        ? [
            advise(
              "PACK_VERSION_DIFFERS",
              `Skill ${name} has version ${version}, but its package has ${String(manifest["version"])}. Use the same version.`,
            ),
          ]
        : [],
    ),
    ...(hasEngines(manifest)
      ? []
      : [
          {
            ...advise(
              "PACK_ENGINES",
              'It does not declare which versions of skillhost it supports. Add "engines": { "skillhost": ">=0.1" }.',
            ),
            severity: "info",
          } as const,
        ]),
  ];
}

function hasEngines({ engines }: Readonly<Record<string, unknown>>): boolean {
  return typeof engines === "object" && engines !== null && Object.hasOwn(engines, "skillhost");
}

/** Imports must come with the package: its installation folder contains nothing else. */
function checkImports({ source, manifest, unpacked }: Packed): readonly Diagnostic[] {
  const groups = ["dependencies", "peerDependencies", "optionalDependencies"].map((group) => manifest[group]);
  const known = new Set([
    "skillhost",
    String(manifest["name"]),
    ...groups.flatMap((group) => Object.keys((group as object | undefined) ?? {})),
  ]);
  return unpacked.files.flatMap(({ path }) => {
    if (!moduleExtensions.includes(extname(path)) || path.startsWith("node_modules/") || /\.test\.[cm]?[jt]s$/.test(path)) return [];
    const unknown = [...importsOf(join(unpacked.folder, path))].filter((name) => !known.has(name));
    return unknown.map((name): Diagnostic => {
      const message = `This imports "${name}", which is not a dependency in package.json, so users who install the package will not have it. Run "npm install ${name}" in its folder.`;
      return { severity: "error", code: "PACK_DEPENDENCY", file: join(source, path), message };
    });
  });
}

/** The packages that a module imports, except for types. */
function importsOf(file: string): ReadonlySet<string> {
  const read = readTextFile(file, maxDocumentBytes);
  const module = read.ok ? parseModule(file, read.text) : undefined;
  const names = new Set<string>();
  for (const node of module?.nodes ?? []) {
    const isImport = node.type === "ImportDeclaration" || node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration";
    if (!isImport || !node.source || isTypeOnly(node)) continue;
    const specifier = node.source.value;
    if (/^[./#]|^[a-z]+:/.test(specifier) || isBuiltin(specifier)) continue;
    names.add(
      specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/"),
    );
  }
  return names;
}

function isTypeOnly(node: object): boolean {
  const { importKind, exportKind } = node as { importKind?: string; exportKind?: string };
  return importKind === "type" || exportKind === "type";
}

/** A signature covers every file of the skill: a single different file in the tarball makes it invalid. */
function checkSigned(folder: string, packed: string): readonly Diagnostic[] {
  if (!existsSync(join(folder, signatureFileName))) return [];
  const refuse = (path: string, message: string): Diagnostic => ({
    severity: "error",
    code: "PACK_SIGNED",
    file: join(folder, path),
    message: `${message} Run "skillhost sign" on the skill, then pack again.`,
  });
  const read = readTextFile(join(packed, signatureFileName), maxDocumentBytes);
  if (!read.ok) return [refuse(signatureFileName, "This skill is signed, but its signature is not packed.")];
  const parsed = parseSignature(read.text);
  if (!parsed.ok) return [refuse(signatureFileName, `The signature is not valid: ${parsed.why}.`)];
  const { files: signed } = parsed.statement;
  const { files: found } = digestFolder(packed);
  return [...new Set([...signed.keys(), ...found.keys()])].flatMap((path) => {
    const [one, other] = [signed.get(path), found.get(path)];
    if (one?.digest === other?.digest || (one === undefined && isInert(path))) return [];
    if (other === undefined) return [refuse(path, "This file is signed but not packed.")];
    if (one !== undefined) return [refuse(path, "This file has changed since the skill was signed.")];
    const why = path === "package.json" ? ": it was added after the skill was signed" : "";
    return [refuse(path, `This file is packed but not signed${why}.`)];
  });
}

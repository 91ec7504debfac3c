import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "../../base/json.ts";
import { packageRoot, packageVersion } from "../../base/package-root.ts";
import type { SkillKind } from "./skill-template.ts";
import type { ScaffoldFiles } from "./write-scaffold.ts";

const schemas = "node_modules/skillhost/schemas";

/** The `$schema` of a skill.json that lies in `skills/<name>` of a project. */
export const projectSkillSchema: string = `../../${schemas}/skill.schema.json`;

/** The files of a new project beside its package.json. */
export function projectFiles(kind: SkillKind): ScaffoldFiles {
  return {
    "skillhost.json": toText({
      $schema: `./${schemas}/skillhost.schema.json`,
      skillDirectories: ["./skills"],
      ...(kind === "python" && { plugins: ["skillhost/plugins/python-tools"] }),
    }),
    ".gitignore": kind === "python" ? "node_modules/\n__pycache__/\n.venv/\n" : "node_modules/\n",
    ...(kind === "typescript" && { "tsconfig.json": tsconfig }),
  };
}

const tsconfig = `{
  // skillhost runs TypeScript as it is: this file is for the editor and for "npm run typecheck".
  "compilerOptions": {
    "target": "es2023",
    "module": "nodenext",
    "strict": true,
    "noEmit": true,
    "skipLibCheck": true,
    "types": ["node"]
  },
  "include": ["skills", "plugins"]
}
`;

/** A package.json for a new project. */
export function packageManifest(name: string, kind: SkillKind): string {
  return toText({ name, version: "0.1.0", private: true, type: "module", ...additions(kind) });
}

/**
 * An existing package.json with the scripts and the dependency that it lacks; what it has is not changed. Undefined: it lacks none.
 * `manifest` is its content, which is a JSON object.
 */
export function extendManifest(text: string, manifest: Readonly<Record<string, unknown>>, kind: SkillKind): string | undefined {
  const { scripts, devDependencies } = additions(kind);
  const own = (key: string): Readonly<Record<string, unknown>> => (isRecord(manifest[key]) ? manifest[key] : {});
  const known = new Set(
    ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"].flatMap((key) => Object.keys(own(key))),
  );
  const missing = Object.fromEntries(Object.entries(devDependencies).filter(([name]) => !known.has(name)));
  const newScripts = Object.fromEntries(Object.entries(scripts).filter(([name]) => !Object.hasOwn(own("scripts"), name)));
  if (Object.keys(missing).length + Object.keys(newScripts).length === 0) return undefined;
  const extended = {
    ...manifest,
    ...(Object.keys(newScripts).length > 0 && { scripts: { ...own("scripts"), ...newScripts } }),
    ...(Object.keys(missing).length > 0 && { devDependencies: { ...own("devDependencies"), ...missing } }),
  };
  const indent = /^[\t ]+(?=")/m.exec(text)?.[0] ?? "  ";
  const written = JSON.stringify(extended, null, indent) + (text.endsWith("\n") ? "\n" : "");
  return text.includes("\r\n") ? written.replaceAll("\n", "\r\n") : written;
}

function additions(kind: SkillKind): {
  readonly scripts: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
} {
  const isTyped = kind === "typescript";
  return {
    scripts: { dev: "skillhost dev", check: "skillhost check --strict", test: "node --test", ...(isTyped && { typecheck: "tsc" }) },
    devDependencies: {
      ...(isTyped && { "@types/node": testedRange("@types/node") }),
      skillhost: `^${packageVersion}`,
      ...(isTyped && { typescript: testedRange("typescript") }),
    },
  };
}

/** The versions of a tool that this package is tested with. */
function testedRange(name: string): string {
  const own = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { devDependencies: Record<string, string> };
  return `^${own.devDependencies[name]}`;
}

function toText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

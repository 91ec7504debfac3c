import { z } from "zod";

/** Findings as linters report them: paths are absolute or relative to the folder where the linter ran. */
export const reportedFindings = z.array(
  z.object({
    file: z.string(),
    line: z.int().default(1),
    column: z.int().optional(),
    rule: z.string().nullish(),
    severity: z.string().default("error"),
    message: z.string(),
  }),
);

// biome-ignore lint/suspicious/noExplicitAny: what is read from a report is checked against the schema above
type Report = any;

export interface Linter {
  readonly name: string;
  /** The npm package that has the program; undefined for a linter that npm does not install. */
  readonly npmPackage?: string;
  /** Names of its configuration files. A project also uses a linter that is only listed in its dependencies. */
  readonly configFile: RegExp;
  /** Files that it is called with by name. Folders are passed to every linter. */
  readonly files: RegExp;
  readonly args: readonly string[];
  /** Picks the fields of `reportedFindings`; may throw. */
  read(report: Report): unknown;
}

const oxlint: Linter = {
  name: "oxlint",
  npmPackage: "oxlint",
  configFile: /^(?:\.oxlintrc\.jsonc?|oxlint\.config\.ts)$/,
  files: /\.(?:[cm]?[jt]s|[jt]sx|vue|svelte|astro)$/i,
  // Without this, it checks installed packages where .gitignore does not list node_modules.
  args: ["--format", "json", "--ignore-pattern=**/node_modules/**"],
  read: (report) =>
    report.diagnostics.map(({ filename, labels, code, severity, message }: Report) => {
      return { ...labels[0]?.span, file: filename, rule: code, severity, message };
    }),
};

const biome: Linter = {
  name: "biome",
  npmPackage: "@biomejs/biome",
  configFile: /^\.?biome\.jsonc?$/,
  files: /\.(?:[cm]?[jt]s|[jt]sx|vue|svelte|astro|jsonc?|css|graphql|html)$/i,
  args: ["lint", "--reporter=json", "--max-diagnostics=none"],
  read: (report) =>
    report.diagnostics.map(({ location, category, severity, message, description }: Report) => {
      // Before version 2.4, a location is a byte offset in `sourceCode`, and `message` is formatted text.
      const place = location.start ?? placeAt(location.sourceCode ?? "", location.span?.[0] ?? 0);
      return { ...place, file: location.path.file ?? location.path, rule: category, severity, message: description ?? message };
    }),
};

function placeAt(text: string, byteOffset: number): { readonly line: number; readonly column: number } {
  const before = Buffer.from(text).subarray(0, byteOffset).toString().split("\n");
  return { line: before.length, column: before[before.length - 1]!.length + 1 };
}

const eslint: Linter = {
  name: "eslint",
  npmPackage: "eslint",
  configFile: /^(?:eslint\.config\.[cm]?[jt]s|\.eslintrc(?:\.(?:c?js|json|ya?ml))?)$/,
  files: oxlint.files,
  args: ["--format", "json", "--no-error-on-unmatched-pattern"],
  read: (report) =>
    report.flatMap(({ filePath, messages }: Report) =>
      messages.map(({ line, column, ruleId, severity, message }: Report) => {
        return { file: filePath, line, column, rule: ruleId, severity: severity === 2 ? "error" : "warning", message };
      }),
    ),
};

const ruff: Linter = {
  name: "ruff",
  configFile: /^\.?ruff\.toml$/,
  files: /\.(?:pyi?|ipynb)$/i,
  // Without --no-fix, `fix = true` in the configuration makes Ruff change files.
  args: ["check", "--output-format", "json", "--no-fix", "--no-cache"],
  read: (report) =>
    report.map(({ filename, location, code, severity, message }: Report) => {
      return { file: filename, line: location.row, column: location.column, rule: code, severity, message };
    }),
};

/** The fallback where no linter covers JavaScript and TypeScript: a script of this skill, which only parses. */
export const syntaxCheck: Linter = {
  name: "syntax",
  configFile: /^\b$/,
  files: /\.(?:[cm]?[jt]s|[jt]sx)$/i,
  args: [],
  read: (report) => report,
};

export const linters: readonly Linter[] = [oxlint, biome, eslint, ruff];

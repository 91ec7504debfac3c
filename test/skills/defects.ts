import { mkdirSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic } from "skillhost";
import type { TestHostOptions } from "skillhost/testing";
import { type Files, skillMd, toolSource } from "./kit.ts";

export const tool = (name: string, more: object = {}): string => JSON.stringify({ name, description: "For a test.", ...more });

export interface Defect {
  readonly files: Files;
  readonly prepare?: (folder: string, root: string) => void;
  readonly code: string;
  /** File in which the defect is reported, relative to the skill. */
  readonly at: string;
  readonly line?: number;
  readonly column?: number;
  readonly severity?: Diagnostic["severity"];
  /** Parts of the skill that still work. */
  readonly tools?: readonly string[];
  readonly state?: "active" | "failed";
  /** Pattern that the message must match. */
  readonly says?: RegExp;
  readonly options?: TestHostOptions;
}

/** Files of a skill with a working tool. */
export const other: Files = {
  "SKILL.md": skillMd("bad"),
  "skill.json": '{ "name": "bad" }',
  "tools/works.ts": toolSource("works", '"works"'),
};
const outside = { code: "PATH_OUTSIDE", tools: ["works"] } as const;

/** Skills with one defect each, named "bad". Another skill, named "good", must work beside each of them. */
export const defects: Record<string, Defect> = {
  "a NUL in SKILL.md": {
    files: { ...other, "SKILL.md": skillMd("bad", "a\0b") },
    code: "TEXT_NUL",
    at: "SKILL.md",
    severity: "warning",
    tools: ["works"],
  },
  "a SKILL.md in UTF-16": {
    files: { ...other, "SKILL.md": Buffer.from(`\uFEFF${skillMd("bad")}`, "utf16le") },
    code: "TEXT_ENCODING",
    at: "SKILL.md",
    severity: "warning",
    tools: ["works"],
  },
  "a SKILL.md in Latin-1": {
    files: { ...other, "SKILL.md": Buffer.from(skillMd("bad", "Gr\u00fc\u00dfe"), "latin1") },
    code: "TEXT_NOT_UTF8",
    at: "SKILL.md",
    severity: "warning",
    tools: ["works"],
  },
  "a skill.md in lower case": {
    files: { "skill.md": skillMd("bad"), "tools/works.ts": other["tools/works.ts"] as string },
    code: "SKILL_FILE_CASE",
    at: "skill.md",
    severity: "warning",
    tools: ["works"],
  },
  "a tool JSON with a NUL": {
    files: { ...other, "tools/nul.json": `{ "name": "a\0b" }` },
    code: "TOOL_INVALID",
    at: "tools/nul.json",
    tools: ["works"],
  },
  "a prompt that climbs out": {
    files: { ...other, "skill.json": '{\n  "name": "bad",\n  "prompts": ["../good/SKILL.md"]\n}' },
    ...outside,
    at: "skill.json",
    line: 3,
    column: 15,
  },
  "a prompt with an absolute path": {
    files: { ...other, "skill.json": '{ "name": "bad", "prompts": ["/etc/passwd"] }' },
    ...outside,
    at: "skill.json",
    line: 1,
  },
  "a listed prompt that is a link out": {
    files: { ...other, "skill.json": '{ "name": "bad", "prompts": ["secret.md"] }' },
    prepare: (folder) => symlinkSync("/etc/passwd", join(folder, "secret.md")),
    ...outside,
    at: "skill.json",
  },
  "a prompt in prompts/ that is a link out": {
    files: { "SKILL.md": skillMd("bad"), "tools/works.ts": toolSource("works", '"works"') },
    prepare: (folder) => {
      mkdirSync(join(folder, "prompts"));
      symlinkSync("/etc/passwd", join(folder, "prompts/secret.md"));
    },
    ...outside,
    at: "prompts/secret.md",
  },
  "a tool that climbs out": {
    files: { ...other, "skill.json": '{ "name": "bad", "tools": ["tools/works.ts", "../good/tools/good.ts"] }' },
    ...outside,
    at: "skill.json",
    line: 1,
  },
  "a tool with an absolute path": {
    files: { ...other, "skill.json": '{ "name": "bad", "tools": ["tools/works.ts", "/tmp/x.ts"] }' },
    ...outside,
    at: "skill.json",
    line: 1,
  },
  "a listed tool that is a link out": {
    files: { ...other, "skill.json": '{ "name": "bad", "tools": ["tools/works.ts", "tools/link.ts"] }' },
    prepare: (folder, root) => symlinkSync(join(root, "good/tools/good.ts"), join(folder, "tools/link.ts")),
    ...outside,
    at: "skill.json",
  },
  "a tool in tools/ that is a link out": {
    files: other,
    prepare: (folder, root) => symlinkSync(join(root, "good/tools/good.ts"), join(folder, "tools/link.ts")),
    ...outside,
    at: "tools/link.ts",
  },
  "a tools/ that is a link out": {
    files: { "SKILL.md": skillMd("bad") },
    prepare: (folder, root) => symlinkSync(join(root, "good/tools"), join(folder, "tools"), "dir"),
    code: "PATH_OUTSIDE",
    at: "tools",
  },
  "a handler module that climbs out": {
    files: { ...other, "tools/out.json": tool("out", { handler: { module: "../../good/tools/good.ts" } }) },
    ...outside,
    at: "tools/out.json",
  },
  "a handler module with an absolute path": {
    files: { ...other, "tools/out.json": tool("out", { handler: { module: "/tmp/x.ts" } }) },
    ...outside,
    at: "tools/out.json",
    line: 1,
  },
  "a handler module that is a link out": {
    files: { ...other, "tools/out.json": tool("out", { handler: { module: "../link.ts" } }) },
    prepare: (folder, root) => symlinkSync(join(root, "good/tools/good.ts"), join(folder, "link.ts")),
    ...outside,
    at: "tools/out.json",
  },
  "a program that works outside the skill": {
    files: { ...other, "tools/out.json": tool("out", { handler: { command: "ls", cwd: "../.." } }) },
    ...outside,
    at: "tools/out.json",
    line: 1,
  },
  "a SKILL.md that is a folder": { files: { "SKILL.md/x": "x" }, code: "FILE_NOT_REGULAR", at: "SKILL.md", state: "failed" },
  "a SKILL.md that is a folder, with a manifest": {
    files: { "SKILL.md/x": "x", "skill.json": '{ "name": "bad" }', "tools/works.ts": other["tools/works.ts"] as string },
    code: "FILE_NOT_REGULAR",
    at: "SKILL.md",
    tools: ["works"],
  },
  "a skill.json that is a folder": {
    files: { "SKILL.md": skillMd("bad"), "tools/works.ts": toolSource("works", '"works"'), "skill.json/x": "x" },
    code: "FILE_NOT_REGULAR",
    at: "skill.json",
  },
  "a tool JSON that is a folder": {
    files: { ...other, "skill.json": '{ "name": "bad", "tools": ["tools/works.ts", "tools/x.json"] }', "tools/x.json/y": "y" },
    code: "FILE_NOT_REGULAR",
    at: "tools/x.json",
    tools: ["works"],
  },
  "a module that is a folder": {
    files: { ...other, "skill.json": '{ "name": "bad", "tools": ["tools/works.ts", "tools/x.ts"] }', "tools/x.ts/y": "y" },
    code: "MODULE_UNREADABLE",
    at: "tools/x.ts",
    tools: ["works"],
  },
  "a tools/ that is a file": { files: { "SKILL.md": skillMd("bad"), tools: "not a folder" }, code: "TOOLS_NOT_A_FOLDER", at: "tools" },
  "a SKILL.md that is too large": {
    files: { "SKILL.md": "" },
    prepare: (folder) => truncateSync(join(folder, "SKILL.md"), 5 * 1024 * 1024),
    code: "FILE_TOO_LARGE",
    at: "SKILL.md",
    state: "failed",
  },
  "a manifest of 50 MB": {
    files: { "skill.json": "" },
    prepare: (folder) => truncateSync(join(folder, "skill.json"), 50 * 1024 * 1024),
    code: "FILE_TOO_LARGE",
    at: "skill.json",
    state: "failed",
  },
  "a tool JSON of 50 MB": {
    files: { ...other, "tools/big.json": "" },
    prepare: (folder) => truncateSync(join(folder, "tools/big.json"), 50 * 1024 * 1024),
    code: "FILE_TOO_LARGE",
    at: "tools/big.json",
    tools: ["works"],
  },
  "a module of 50 MB": {
    files: { ...other, "tools/big.ts": "" },
    prepare: (folder) => truncateSync(join(folder, "tools/big.ts"), 50 * 1024 * 1024),
    code: "MODULE_TOO_LARGE",
    at: "tools/big.ts",
    tools: ["works"],
  },
  "a manifest with a comma too much": {
    files: { "skill.json": '{\n  "name": "bad",\n}' },
    code: "JSON_SYNTAX",
    at: "skill.json",
    line: 2,
    column: 16,
    state: "failed",
  },
  "a tool JSON with a comment": {
    files: { ...other, "tools/x.json": '{\n  // no\n  "name": "x" }' },
    code: "JSON_SYNTAX",
    at: "tools/x.json",
    line: 2,
    column: 3,
    tools: ["works"],
  },
  "a module that does not parse": {
    files: { ...other, "tools/x.ts": "const a = 1;\nexport default ((" },
    code: "MODULE_SYNTAX",
    at: "tools/x.ts",
    line: 2,
    tools: ["works"],
  },
  "a module that throws on import": {
    files: { ...other, "tools/x.ts": 'const a = 1;\n  throw new TypeError("not today");\n' },
    code: "MODULE_THREW",
    at: "tools/x.ts",
    line: 2,
    column: 9,
    tools: ["works"],
    says: /not today/,
  },
  "a module that throws no error on import": {
    files: { ...other, "tools/x.ts": "throw null;\n" },
    code: "MODULE_THREW",
    at: "tools/x.ts",
    tools: ["works"],
  },
  "a helper that throws on import": {
    files: { ...other, "tools/x.ts": 'import "../lib/deep.ts";\n', "lib/deep.ts": '\n\nthrow new Error("deep");\n' },
    code: "MODULE_THREW",
    at: "lib/deep.ts",
    line: 3,
    tools: ["works"],
  },
  "a default function that throws": {
    files: { ...other, "tools/x.ts": 'export default () => {\n  throw new Error("made nothing");\n};\n' },
    code: "MODULE_THREW",
    at: "tools/x.ts",
    tools: ["works"],
    says: /made nothing/,
  },
  "a module that exports nothing": {
    files: { ...other, "tools/x.ts": "const a = 1;\n" },
    code: "MODULE_NO_TOOLS",
    at: "tools/x.ts",
    tools: ["works"],
    says: /underscore/,
  },
  "a module whose default export is not a tool": {
    files: { ...other, "tools/x.ts": "export default 42;\n" },
    code: "MODULE_NOT_A_TOOL",
    at: "tools/x.ts",
    tools: ["works"],
    says: /number/,
  },
  "execute without SCHEMA": {
    files: { ...other, "tools/x.ts": "export const execute = () => 1;\n" },
    code: "MODULE_NO_SCHEMA",
    at: "tools/x.ts",
    tools: ["works"],
  },
  "a module that imports what is not there": {
    files: { ...other, "tools/x.ts": 'import { a } from "./gone.ts";\nexport default a;\n' },
    code: "MODULE_NOT_FOUND",
    at: "tools/x.ts",
    tools: ["works"],
    says: /gone/,
  },
  "a module that imports a name that is not there": {
    files: {
      ...other,
      "tools/x.ts": 'import { nothing } from "../lib/some.ts";\nexport default nothing;\n',
      "lib/some.ts": "export const some = 1;\n",
    },
    code: "MODULE_EXPORT_MISSING",
    at: "tools/x.ts",
    tools: ["works"],
    says: /nothing/,
  },
  "a module that never stops loading": {
    files: { ...other, "tools/x.ts": "await new Promise(() => {});\n" },
    code: "MODULE_TIMEOUT",
    at: "tools/x.ts",
    tools: ["works"],
    options: { importTimeout: 100 },
  },
  "a default function that never returns a tool": {
    files: { ...other, "tools/x.ts": "export default () => new Promise(() => {});\n" },
    code: "MODULE_TIMEOUT",
    at: "tools/x.ts",
    tools: ["works"],
    options: { importTimeout: 100 },
  },
  "a module that ends the process on import": {
    files: { ...other, "tools/x.ts": "process.exit(7);\n" },
    code: "MODULE_EXITED",
    at: "tools/x.ts",
    tools: ["works"],
    options: { guardExit: true },
  },
  "two tools with the same name": {
    files: { ...other, "tools/xworks.ts": toolSource("works", '"the other"') },
    code: "TOOL_NAME_TWICE",
    at: "tools/xworks.ts",
    tools: ["works"],
    says: /works\.ts/,
  },
  "a tool name with a space": {
    files: { ...other, "tools/x.ts": toolSource("run all t\u00e9sts", "1") },
    code: "TOOL_INVALID",
    at: "tools/x.ts",
    tools: ["works"],
    says: /"run_all_tests"/,
  },
  "a tool name that is too long": {
    files: { ...other, "tools/x.json": tool("x".repeat(65)) },
    code: "TOOL_INVALID",
    at: "tools/x.json",
    tools: ["works"],
    says: new RegExp(`"${"x".repeat(64)}"`),
  },
  "a tool without a name": {
    files: { ...other, "tools/x.json": '{\n "description": "Nameless."\n}' },
    code: "TOOL_NAME_MISSING",
    at: "tools/x.json",
    tools: ["works"],
  },
  "parameters that are a list": {
    files: { ...other, "tools/x.json": tool("x", { parameters: [] }) },
    code: "TOOL_FIELD_TYPE",
    at: "tools/x.json",
    line: 1,
    tools: ["works"],
  },
  "parameters of type string": {
    files: {
      ...other,
      "tools/x.ts":
        'export const SCHEMA = { name: "x", description: "X.", parameters: { type: "string" } };\nexport const execute = () => 1;\n',
    },
    code: "TOOL_INVALID",
    at: "tools/x.ts",
    tools: ["works"],
  },
  "parameters that are not a schema": {
    files: { ...other, "tools/x.json": tool("x", { parameters: { type: "object", properties: 5 } }) },
    code: "SCHEMA_INVALID",
    at: "tools/x.json",
    says: /properties/,
  },
  "a handler of two kinds": {
    files: { ...other, "tools/x.json": tool("x", { handler: { module: "./_x.ts", command: "ls" } }) },
    code: "TOOL_HANDLER",
    at: "tools/x.json",
    line: 1,
    tools: ["works"],
  },
  "a listed tool that is not there": {
    files: { ...other, "skill.json": '{ "name": "bad", "tools": ["tools/works.ts", "tools/gone.ts"] }' },
    code: "TOOL_FILE_MISSING",
    at: "skill.json",
    tools: ["works"],
    says: /gone\.ts/,
  },
  "a listed tool in a language that nothing runs": {
    files: { ...other, "skill.json": '{ "name": "bad", "tools": ["tools/works.ts", "tools/x.rb"] }', "tools/x.rb": "" },
    code: "TOOL_FILE_UNKNOWN",
    at: "tools/x.rb",
    tools: ["works"],
  },
  "a listed prompt that is not there": {
    files: { ...other, "skill.json": '{ "name": "bad", "prompts": ["gone.md"] }' },
    code: "PROMPT_MISSING",
    at: "skill.json",
    tools: ["works"],
  },
  "a manifest for a newer host": {
    files: { ...other, "skill.json": '{ "name": "bad", "engines": { "skillhost": ">=999" } }' },
    code: "SKILL_ENGINE",
    at: "skill.json",
    state: "failed",
  },
  "a manifest of an Alexa skill": {
    files: { "skill.json": '{ "manifest": { "manifestVersion": "1.0" } }' },
    code: "MANIFEST_FOREIGN",
    at: "skill.json",
    severity: "info",
    state: "failed",
  },
};

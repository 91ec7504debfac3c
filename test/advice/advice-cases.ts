/** A situation that a piece of advice is about, and the same skill when the advice was taken. */
export interface AdviceCase {
  readonly code: string;
  readonly what: string;
  /** The files of a skill; where one is a text alone, it is `tools/sample.ts`. */
  readonly bad: string | Readonly<Record<string, string>>;
  readonly good: string | Readonly<Record<string, string>>;
  /** What the advice points at: the text in the file, from there on. */
  readonly at?: string;
}

const description = "Counts the words of a text and names the longest one.";
const text = '{ type: "object", properties: { text: { type: "string", description: "The text." } }, required: ["text"] }';

/** A module with the tool `sample`. */
export function sample(handler: string, more = "", before = ""): string {
  return `import { defineTool } from "skillhost";
${before}
export default defineTool("sample", {
  description: "${description}",
  parameters: ${text},
  ${more}
  handler: ${handler},
});
`;
}

function tool(fields: object): string {
  return JSON.stringify({ name: "sample", description, parameters: { type: "object", properties: {}, required: [] }, ...fields }, null, 2);
}

function parameters(properties: object, more: object = { required: [] }): string {
  return tool({ parameters: { type: "object", properties, ...more } });
}

const fine = "() => `3 words were counted.`";

export const adviceCases: readonly AdviceCase[] = [
  {
    code: "ADVICE_DESCRIPTION_VAGUE",
    what: "a description that says no more than the name, in JSON",
    bad: {
      "tools/sample.json": tool({ description: "A tool to process the sample data." }),
      "tools/sample.ts": "export default () => 'Nothing was found.';",
    },
    good: { "tools/sample.json": tool({}), "tools/sample.ts": "export default () => 'Nothing was found.';" },
    at: '"description"',
  },
  {
    code: "ADVICE_DESCRIPTION_VAGUE",
    what: "the same in a module",
    bad: sample(fine).replace(description, "Handles stuff"),
    good: sample(fine),
    at: '"Handles stuff"',
  },
  {
    code: "ADVICE_PARAMETER_UNDESCRIBED",
    what: "a parameter without a description, in JSON and nested",
    bad: {
      "tools/sample.json": parameters({ range: { type: "object", description: "Lines.", properties: { start: { type: "integer" } } } }),
    },
    good: {
      "tools/sample.json": parameters({
        range: { type: "object", description: "Lines.", properties: { start: { type: "integer", description: "From 1." } } },
      }),
    },
    at: '"start"',
  },
  {
    code: "ADVICE_PARAMETER_UNDESCRIBED",
    what: "a field of a Zod schema without a description",
    bad: sample(fine, "", 'import { z } from "zod";').replace(
      text,
      'z.object({ path: z.string().min(1), deep: z.boolean().optional().describe("Folders too.") })',
    ),
    good: sample(fine, "", 'import { z } from "zod";').replace(
      text,
      'z.object({ path: z.string().min(1).describe("Where."), deep: z.boolean().optional().describe("Folders too.") })',
    ),
    at: "path:",
  },
  {
    code: "ADVICE_PARAMETER_UNDESCRIBED",
    what: "a field of a TypeBox schema of the module's own",
    bad: sample(fine, "", 'import { Type } from "@sinclair/typebox";\nconst schema = Type.Object({ path: Type.String() });').replace(
      text,
      "schema",
    ),
    good: sample(
      fine,
      "",
      'import { Type } from "@sinclair/typebox";\nconst schema = Type.Object({ path: Type.String({ description: "Where." }) });',
    ).replace(text, "schema"),
  },
  {
    code: "ADVICE_VALUES_IN_PROSE",
    what: "values that only the description lists",
    bad: { "tools/sample.json": parameters({ order: { type: "string", description: 'The order, "asc" or "desc".' } }) },
    good: {
      "tools/sample.json": parameters({ order: { type: "string", enum: ["asc", "desc"], description: 'The order, "asc" or "desc".' } }),
    },
    at: '"order"',
  },
  {
    code: "ADVICE_VALUES_IN_PROSE",
    what: "values announced without quotes, in a Valibot schema",
    bad: sample(fine, "", 'import * as v from "valibot";').replace(
      text,
      'v.object({ level: v.pipe(v.string(), v.description("One of: low, medium, high.")) })',
    ),
    good: sample(fine, "", 'import * as v from "valibot";').replace(
      text,
      'v.object({ level: v.pipe(v.picklist(["low", "medium", "high"]), v.description("One of: low, medium, high.")) })',
    ),
  },
  {
    code: "ADVICE_REQUIRED_MISSING",
    what: "parameters without a list of the required ones",
    bad: { "tools/sample.json": parameters({ path: { type: "string", description: "The file." } }, {}) },
    good: { "tools/sample.json": parameters({ path: { type: "string", description: "The file." } }, { required: ["path"] }) },
    at: '"parameters"',
  },
  {
    code: "ADVICE_REQUIRED_MISSING",
    what: "the same in a module",
    bad: sample(fine).replace(', required: ["text"]', ""),
    good: sample(fine),
    at: "{ type:",
  },
  {
    code: "ADVICE_NAME_NOT_FILE",
    what: "a tool in a file that is called otherwise",
    bad: { "tools/other.json": tool({}) },
    good: { "tools/sample.json": tool({}) },
    at: '"name"',
  },
  {
    code: "ADVICE_BUILTIN_NAME",
    what: "the name of a built-in tool",
    bad: { "tools/grep.json": tool({ name: "grep" }) },
    good: { "tools/grep.json": tool({ name: "grep", overridesBuiltInTool: true }) },
    at: '"name"',
  },
  {
    code: "ADVICE_ERROR_IN_TEXT",
    what: "what an error says in a returned text",
    bad: sample("async () => { try { return `Counted ${await 3}.`; } catch (error) { return `Failed: ${error.message}`; } }"),
    good: sample(
      "async () => { try { return `Counted ${await 3}.`; } catch (error) { return { textResultForLlm: 'The text could not be read.', resultType: 'failure', error: error.message }; } }",
    ),
    at: "`Failed",
  },
  {
    code: "ADVICE_ERROR_IN_TEXT",
    what: "what an error says in textResultForLlm, by way of a variable",
    bad: sample(
      "() => { try { return 'Counted 3.'; } catch (cause) { const said = cause instanceof Error ? cause.message : String(cause); return { resultType: 'failure', textResultForLlm: 'No: ' + said }; } }",
    ),
    good: sample(
      "() => { try { return 'Counted 3.'; } catch (cause) { const said = cause instanceof Error ? cause.message : String(cause); return { resultType: 'failure', textResultForLlm: 'It could not be counted.', sessionLog: said }; } }",
    ),
  },
  {
    code: "ADVICE_ERROR_IN_TEXT",
    what: "a stack in a returned object",
    bad: sample("() => { try { return 'Counted 3.'; } catch (error) { return { ok: false, detail: error.stack }; } }"),
    good: sample("() => { try { return 'Counted 3.'; } catch (error) { throw new Error('Counting failed.', { cause: error }); } }"),
  },
  {
    code: "ADVICE_ERROR_IN_TEXT",
    what: "an error's text handed on by a helper's callback",
    bad: sample(
      "() => work().catch(refused)",
      "",
      "const refused = (error: Error) => ({ resultType: 'failure', textResultForLlm: error.message });\nconst work = async () => '3 words.';",
    ),
    good: sample(
      "() => work().catch(refused)",
      "",
      "const refused = (error: Error) => ({ resultType: 'failure', textResultForLlm: 'It is closed.', error: error.message });\nconst work = async () => '3 words.';",
    ),
  },
  {
    code: "ADVICE_BARE_SUCCESS",
    what: "a bare word",
    bad: sample('() => "Success!"'),
    good: sample('() => "Saved 3 words to notes.md."'),
    at: '"Success!"',
  },
  {
    code: "ADVICE_BARE_SUCCESS",
    what: "a bare word for the model beside other data",
    bad: sample("() => ({ textResultForLlm: 'Done.', sessionLog: 'x' })"),
    good: sample("() => ({ textResultForLlm: 'Renamed a.txt to b.txt.', sessionLog: 'x' })"),
  },
  {
    code: "ADVICE_BARE_SUCCESS",
    what: "an object that says only that it went well",
    bad: sample("({ text }) => (text ? { success: true } : 'There was no text.')"),
    good: sample("({ text }) => ({ success: true, words: text.length })"),
  },
  {
    code: "ADVICE_RETURNS_NOTHING",
    what: "a handler without a result",
    bad: sample("async ({ text }) => { text.trim(); }"),
    good: sample("async ({ text }) => { return `Trimmed to ${text.trim()}.`; }"),
    at: "async (",
  },
  {
    code: "ADVICE_RETURNS_NOTHING",
    what: "an execute function without a result",
    bad: `export const SCHEMA = { name: "sample", description: "${description}", inputSchema: { type: "object", properties: {}, required: [] } };\nexport function execute() {}\n`,
    good: `export const SCHEMA = { name: "sample", description: "${description}", inputSchema: { type: "object", properties: {}, required: [] } };\nexport function execute() {\n  return [{ type: "text", value: "3 words were counted." }];\n}\n`,
    at: "function execute",
  },
  {
    code: "ADVICE_ABSOLUTE_PATH",
    what: "a path in a user's home folder",
    bad: sample(fine, "", "const notes = '/home/ada/notes.md';\nexport { notes };"),
    good: sample(fine, "", "const notes = 'notes.md';\nexport { notes };"),
    at: "'/home",
  },
  {
    code: "ADVICE_ABSOLUTE_PATH",
    what: "a path on a drive, in a command",
    bad: { "tools/sample.json": tool({ handler: { command: "C:\\Tools\\lint.exe", args: [] } }) },
    good: { "tools/sample.json": tool({ handler: { command: "lint", args: [] } }) },
    at: '"handler"',
  },
  {
    code: "ADVICE_ARGUMENT_OPTION",
    what: "an argument that may be taken for an option",
    bad: {
      "tools/sample.json": tool({
        parameters: { type: "object", properties: { text: { type: "string", description: "The text." } }, required: ["text"] },
        handler: { command: "lint", args: ["run", "${text}"] },
      }),
    },
    good: {
      "tools/sample.json": tool({
        parameters: { type: "object", properties: { text: { type: "string", description: "The text." } }, required: ["text"] },
        handler: { command: "lint", args: ["run", "--", "${text}"] },
      }),
    },
    at: '"handler"',
  },
  {
    code: "ADVICE_WRITE_UNANNOUNCED",
    what: "a file written without a notification of the session",
    bad: sample(
      "async ({ text }, { workingDirectory }) => { await writeFile(`${workingDirectory}/a.md`, text); return 'Wrote a.md.'; }",
      "",
      'import { writeFile } from "node:fs/promises";',
    ),
    good: sample(
      "async ({ text }, { workingDirectory }, context) => { await writeFile(`${workingDirectory}/a.md`, text); context.fileChanged(`${workingDirectory}/a.md`, text); return 'Wrote a.md.'; }",
      "",
      'import { writeFile } from "node:fs/promises";',
    ),
    at: "writeFile(`",
  },
  {
    code: "ADVICE_WRITE_UNANNOUNCED",
    what: "a file written by a helper of the skill",
    bad: {
      "tools/sample.ts": sample("({ text }) => save(text)", "", 'import { save } from "./_save.ts";'),
      "tools/_save.ts":
        'import * as fs from "fs";\nexport const save = (text: string) => { fs.writeFileSync("a.md", text); return "Wrote a.md."; };\n',
    },
    good: {
      "tools/sample.ts": sample(
        "({ text }, _i, context) => { context.fileChanged('a.md', text); return save(text); }",
        "",
        'import { save } from "./_save.ts";',
      ),
      "tools/_save.ts":
        'import * as fs from "fs";\nexport const save = (text: string) => { fs.writeFileSync("a.md", text); return "Wrote a.md."; };\n',
    },
  },
  {
    code: "ADVICE_NO_TIMEOUT",
    what: "a request without a signal",
    bad: sample("async ({ text }) => (await fetch(`https://example.org/${text}`)).text()"),
    good: sample("async ({ text }, { signal }) => (await fetch(`https://example.org/${text}`, { signal })).text()"),
    at: "fetch(",
  },
  {
    code: "ADVICE_NO_TIMEOUT",
    what: "a request of node:https without a signal",
    bad: sample(
      "() => new Promise((resolve) => https.get('https://example.org', (answer) => resolve(`${answer.statusCode} came back.`)))",
      "",
      'import https from "node:https";',
    ),
    good: sample(
      "(_args, { signal }) => new Promise((resolve) => https.get('https://example.org', { signal }, (answer) => resolve(`${answer.statusCode} came back.`)))",
      "",
      'import https from "node:https";',
    ),
  },
];

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const installed = fileURLToPath(new URL("../../node_modules/", import.meta.url));

/** A temporary folder, with the packages that skills import beside the one they lie in. */
export function tempFolder() {
  const base = mkdtempSync(join(tmpdir(), "skillhost-bench-"));
  const skills = join(base, "skills");
  mkdirSync(skills);
  mkdirSync(join(base, "node_modules"));
  symlinkSync(join(installed, "zod"), join(base, "node_modules", "zod"), "junction");
  return { base, skills, remove: () => rmSync(base, { recursive: true, force: true }) };
}

/**
 * Writes skills of one make: skill.json, two prompts (1.9 KB), three tool JSON (1.6 KB each, 1.1 KB without white space) and a module of 64 lines.
 * `handlers`: the module holds the tools' handlers. `definitions`: the tools run commands, and the module defines a
 * fourth tool with a zod schema.
 */
export function writeSkills(root, count, form) {
  for (let index = 0; index < count; index++) writeSkill(root, index, form);
}

/**
 * Writes skills of one SKILL.md each, as they are published: front matter of some fields, and headings, lists and code. They have 2 to
 * 14 KB, and in two thirds of them a dash makes the text more than Latin-1.
 */
export function writeTextSkills(root, count, word = "written") {
  for (let index = 0; index < count; index++) {
    const name = skillName(index);
    write(join(root, name), "SKILL.md", textSkill(name, index, word));
  }
}

function textSkill(name, index, word) {
  const dash = index % 3 === 0 ? "-" : "—";
  const part = (at) => `## Step ${at}

Look at the records of ledger ${index} ${dash} the ones that were ${word} last ${dash} and compare them with step ${at - 1}.

- Prefer \`ledger list --order newest\` to reading the files.
- State the number of records, and why each was left out.

\`\`\`sh
ledger list --number ${at} --format json > step-${at}.json
\`\`\`
`;
  const parts = Array.from({ length: 6 + ((index * 7) % 36) }, (_, at) => part(at + 1));
  return `---
name: ${name}
description: "Works with ledger ${index}: finds records, compares them and explains differences. Use it when a question names this ledger or one of its accounts."
license: MIT
allowed-tools: Read, Bash(ledger:*)
metadata:
  author: bench
  version: 1.0.${index % 10}
---

# Ledger ${index}

${parts.join("\n")}`;
}

export const skillName = (index) => `bench-skill-${String(index).padStart(5, "0")}`;
export const toolName = (index, which) => `b${index}_${which}`;

function writeSkill(root, index, form) {
  const folder = join(root, skillName(index));
  write(folder, "skill.json", `${JSON.stringify(manifest(index), undefined, 2)}\n`);
  write(folder, "prompts/usage.md", prompt(index, "How to use it", 10));
  write(folder, "prompts/style.md", prompt(index, "How to answer", 8));
  for (const which of verbs) write(folder, `tools/${which}.json`, `${JSON.stringify(toolJson(index, which, form), undefined, 2)}\n`);
  if (form === "handlers") write(folder, "tools/_handlers.ts", handlersModule(index));
  else write(folder, "tools/define.ts", definingModule(index));
}

export const verbs = ["find", "list", "sum"];

function write(folder, path, text) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function manifest(index) {
  return {
    name: skillName(index),
    displayName: `Bench skill ${index}`,
    description: `Finds, lists and sums the records of ledger ${index}. Use it for questions about that ledger.`,
    version: `1.${index % 10}.0`,
    author: "skillhost",
  };
}

function prompt(index, head, sentences) {
  const sentence = `Ledger ${index} holds one record a line; look before you answer, and name the record's number in the answer.`;
  return `# ${head}\n\n${Array.from({ length: sentences }, (_, n) => `${n + 1}. ${sentence}`).join("\n")}\n`;
}

function toolJson(index, which, form) {
  const text = (description) => ({ type: "string", description, minLength: 1, maxLength: 200 });
  return {
    name: toolName(index, which),
    title: `${which} records of ledger ${index}`,
    description: `Does "${which}" over the records of ledger ${index}. Use it when a question names this ledger.`,
    parameters: {
      type: "object",
      additionalProperties: false,
      required: ["query"],
      properties: {
        query: text("What the records are matched with."),
        account: text("The account whose records count."),
        limit: { type: "integer", description: "Most records in the answer.", minimum: 1, maximum: 500, default: 20 },
        order: { type: "string", description: "What comes first.", enum: ["newest", "oldest", "largest", "smallest"], default: "newest" },
        between: {
          type: "object",
          description: "The days that count.",
          properties: { from: { type: "string", format: "date" }, to: { type: "string", format: "date" } },
        },
        tags: { type: "array", description: "Records with all of these.", items: { type: "string" }, maxItems: 10 },
      },
    },
    handler:
      form === "handlers"
        ? { module: "_handlers.ts", export: which }
        : { command: process.execPath, args: ["-e", "console.log(process.argv[1])", "${query}"] },
  };
}

/** `answer` distinguishes the generations. */
function handlersModule(index, answer = 0) {
  return pad(`import { basename } from "node:path";
import type { ToolInvocation } from "skillhost";

interface Query {
  readonly query: string;
  readonly account?: string;
  readonly limit?: number;
  readonly order?: "newest" | "oldest" | "largest" | "smallest";
  readonly tags?: readonly string[];
}

interface Row {
  readonly number: number;
  readonly account: string;
  readonly amount: number;
  readonly tags: readonly string[];
}

const answer = ${answer};
const ledger = "ledger-${index}";
const rows: readonly Row[] = Array.from({ length: 40 }, (_, number) => ({
  number,
  account: \`account-\${number % 7}\`,
  amount: ((number * 37 + ${index}) % 1000) / 10,
  tags: number % 3 === 0 ? ["open", "checked"] : ["closed"],
}));

export function find({ query, limit = 20 }: Query): unknown {
  return { answer, ledger, rows: matching(query).slice(0, limit) };
}

export function list({ query, account, tags = [] }: Query, invocation: ToolInvocation): unknown {
  const found = matching(query).filter((row) => account === undefined || row.account === account);
  const tagged = found.filter((row) => tags.every((tag) => row.tags.includes(tag)));
  return { answer, ledger, in: basename(invocation.workingDirectory), numbers: tagged.map((row) => row.number) };
}

export async function sum({ query, order = "newest" }: Query): Promise<unknown> {
  const amounts = sorted(matching(query), order).map((row) => row.amount);
  return { answer, ledger, sum: amounts.reduce((total, amount) => total + amount, 0) };
}

function matching(query: string): Row[] {
  const wanted = query.toLowerCase();
  return rows.filter((row) => wanted === "*" || row.account.includes(wanted) || String(row.number) === wanted);
}

function sorted(found: Row[], order: NonNullable<Query["order"]>): Row[] {
  const directions = { newest: -1, oldest: 1, largest: -1, smallest: 1 } as const;
  const byAmount = order === "largest" || order === "smallest";
  return found.sort((a, b) => directions[order] * (byAmount ? a.amount - b.amount : a.number - b.number));
}
`);
}

/** A module that defines the tool `b<index>_report`; `answer` distinguishes the generations, `head` comes first. */
export function definingModule(index, answer = 0, head = "") {
  return pad(`${head}import { defineTool } from "skillhost";
import type { ToolInvocation } from "skillhost";
import { z } from "zod";

const parameters = z.object({
  query: z.string().min(1).max(200).describe("What the records are matched with."),
  account: z.string().optional().describe("The account whose records count."),
  limit: z.number().int().min(1).max(500).default(20).describe("Most records in the answer."),
  order: z.enum(["newest", "oldest", "largest", "smallest"]).default("newest").describe("What comes first."),
  between: z.object({ from: z.string(), to: z.string() }).optional().describe("The days that count."),
  tags: z.array(z.string()).max(10).default([]).describe("Records with all of these."),
});

interface Row {
  readonly number: number;
  readonly account: string;
  readonly amount: number;
}

const answer: number = ${answer};
const ledger = "ledger-${index}";
const rows: readonly Row[] = Array.from({ length: 40 }, (_, number) => ({
  number,
  account: \`account-\${number % 7}\`,
  amount: ((number * 37 + ${index}) % 1000) / 10,
}));

export const report = defineTool("${toolName(index, "report")}", {
  title: "Report of ledger ${index}",
  description: "Reports the records of ledger ${index} that match. Use it when a question names this ledger.",
  parameters,
  handler: (args, invocation: ToolInvocation) => {
    const { query, limit, order } = args;
    const found = sorted(matching(query), order).slice(0, limit);
    return { answer, ledger, call: invocation.toolName, total: total(found), rows: found };
  },
});

function matching(query: string): Row[] {
  const wanted = query.toLowerCase();
  return rows.filter((row) => wanted === "*" || row.account.includes(wanted) || String(row.number) === wanted);
}

function sorted(found: Row[], order: z.infer<typeof parameters>["order"]): Row[] {
  const directions = { newest: -1, oldest: 1, largest: -1, smallest: 1 } as const;
  const byAmount = order === "largest" || order === "smallest";
  return found.sort((a, b) => directions[order] * (byAmount ? a.amount - b.amount : a.number - b.number));
}

function total(found: readonly Row[]): number {
  return found.reduce((sum, row) => sum + row.amount, 0);
}
`);
}

function pad(text) {
  const lines = text.split("\n").length - 1;
  return text + "// A ledger is read as a whole; there is nothing to close.\n".repeat(Math.max(0, 64 - lines));
}

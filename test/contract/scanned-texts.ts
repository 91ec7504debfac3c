import { tmpdir } from "node:os";
import { applyHunks } from "../../plugins/workspace-tools/operations/apply-hunks.ts";
import { describeCommand } from "../../plugins/workspace-tools/operations/describe-command.ts";
import { replaceOnce } from "../../plugins/workspace-tools/operations/edit-text.ts";
import { jsonFaultAt } from "../../plugins/workspace-tools/operations/file-checks.ts";
import { parseGlob } from "../../plugins/workspace-tools/operations/glob-pattern.ts";
import { htmlToText } from "../../plugins/workspace-tools/operations/html-text.ts";
import { isIgnored, parseIgnoreFile } from "../../plugins/workspace-tools/operations/ignore-rules.ts";
import { isElided, mergeElided } from "../../plugins/workspace-tools/operations/merge-elided.ts";
import { isPatchFault, parsePatch } from "../../plugins/workspace-tools/operations/patch-format.ts";
import { parseSearchPattern } from "../../plugins/workspace-tools/operations/search-pattern.ts";
import { selectPassages } from "../../plugins/workspace-tools/operations/select-passages.ts";
import { unifiedDiff } from "../../plugins/workspace-tools/operations/unified-diff.ts";
import { matchesPath, matchesWildcard } from "../../src/base/text.ts";
import { findHidden } from "../../src/base/untrusted-text.ts";
import { parseAgentFile } from "../../src/formats/agents/agent-file.ts";
import { parseMarkdownCommand, parseTomlCommand } from "../../src/formats/plugins/command-file.ts";
import { parseFrontMatter } from "../../src/formats/skills/front-matter.ts";
import { lintSkillDocument } from "../../src/formats/skills/lint-skill-document.ts";
import { parsePromptFile } from "../../src/formats/skills/prompt-file.ts";
import { normalizeSkillDocument } from "../../src/formats/skills/served-document.ts";
import { inferDescription, parseSkillDocument } from "../../src/formats/skills/skill-document.ts";
import { parseSkillManifest } from "../../src/formats/skills/skill-manifest.ts";
import { parseToolJson } from "../../src/formats/skills/tool-json.ts";
import { parseJson } from "../../src/formats/text/json-document.ts";
import { parseCommandLine } from "../../src/session/permissions/command-line-rules.ts";
import { hostsIn } from "../../src/session/permissions/permission-patterns.ts";
import { readShellScript } from "../../src/session/permissions/read-shell-script.ts";
import { reachOf } from "../../src/session/permissions/shell-reach.ts";
import { parseUriTemplate } from "../../src/tools/define/uri-template.ts";

/** A function that reads hostile text. */
export type ScanText = (text: string) => unknown;

const place = { file: "/x/skills/x/SKILL.md", directoryName: "x" };
const head = (text: string): string => `---\nname: x\ndescription: ${text}\n---\n`;

export const scans: Readonly<Record<string, ScanText>> = {
  "a web page": (text) => htmlToText(text, "https://a.example/"),
  "a web page with preformatted text": (text) => htmlToText(`<pre>${text}`, "https://a.example/"),
  "a web page with a title": (text) => htmlToText(`<title>${text}</title><p>a`, "https://a.example/"),
  "a web page with a link": (text) => htmlToText(`<a href="${text}">a</a>`, "https://a.example/"),
  "what is about a query": (text) => selectPassages(text, text.slice(0, 1_000), 20_000),
  "front matter": (text) => parseFrontMatter(text),
  "front matter with a description": (text) => parseFrontMatter(head(text)),
  "SKILL.md": (text) => parseSkillDocument(text, place),
  "the description of SKILL.md": (text) => parseSkillDocument(head(text), place),
  "the body of SKILL.md": (text) => parseSkillDocument(head("x") + text, place),
  "SKILL.md that is looked through": (text) => lintSkillDocument(head("x") + text, place),
  "SKILL.md that is served": (text) => normalizeSkillDocument(text, { name: "x", description: "x" }),
  "a description that is inferred": inferDescription,
  "a prompt": (text) => parsePromptFile(text, "/x/p.md"),
  "an agent": (text) => parseAgentFile(text, "/x/a.md"),
  "the body of an agent": (text) => parseAgentFile(head("x") + text, "/x/a.md"),
  "a command in Markdown": (text) => parseMarkdownCommand(text, "/x/c.md", {}),
  "a command in TOML": (text) => parseTomlCommand(text, "/x/c.toml", {}),
  "a prompt in TOML": (text) => parseTomlCommand(`prompt = """${text}`, "/x/c.toml", {}),
  "a list in TOML": (text) => parseTomlCommand(`prompt = [${text}`, "/x/c.toml", {}),
  JSON: (text) => parseJson(text),
  "JSON with comments": (text) => parseJson(text, { comments: true }),
  "skill.json": (text) => parseSkillManifest(text, "/x/skill.json"),
  "a tool in JSON": (text) => parseToolJson(text, "/x/tools/t.json"),
  "hidden characters": findHidden,
  "a URI template": (text) => {
    try {
      return parseUriTemplate(text);
    } catch (error) {
      return error;
    }
  },
  "a command line": parseCommandLine,
  "a command line as it is described": describeCommand,
  "a script": readShellScript,
  "what a line reaches": (text) => reachOf(text, tmpdir()),
  "what cat reaches": (text) => reachOf(`cat ${text}`, tmpdir()),
  "hosts in a word": hostsIn,
  "a path and a rule": (text) => matchesPath("**/secret/*", text),
  "a text and a rule": (text) => matchesWildcard("*a?b*", text),
  "a glob": (text) => parseGlob(text)?.matches("src/a.ts"),
  "a path and a glob": (text) => parseGlob("**/*a*/{b,c}*.ts")?.matches(text),
  "an ignore file": (text) => isIgnored(parseIgnoreFile(text), ["src", "a.ts"], false),
  "a search pattern": (text) => parseSearchPattern(text, { ignoreCase: false, multiline: false }),
  "a text that is searched": (text) => {
    const pattern = parseSearchPattern("(a+)+$|\\s+x", { ignoreCase: true, multiline: false });
    return typeof pattern === "string" ? pattern : pattern.test(text);
  },
  "a patch": parsePatch,
  "the hunks of a patch": (text) => {
    const steps = parsePatch(`*** Begin Patch\n*** Update File: a\n@@ x\n-${text.replaceAll("\n", "\n-")}\n+b\n*** End Patch`);
    return isPatchFault(steps) ? steps : steps.map((step) => step.kind === "update" && applyHunks(text, step.hunks));
  },
  "a diff": (text) => unifiedDiff("a", text, `${text}\nb`),
  "a diff of all lines": (text) => unifiedDiff("a", text, text.replaceAll("\n", "x\n")),
  "a passage that is replaced": (text) => replaceOnce(text, "ab", "c"),
  "code that leaves out what stays": (text) => isElided(text) && mergeElided(text, text),
  "code that leaves out what is around it": (text) => mergeElided(text, `// ...existing code...\n${text}\n// ...existing code...`),
  "a fault in JSON": jsonFaultAt,
};

/** Scans whose time depends only on the length of the text. */
export const countingScans: Readonly<Record<string, ScanText>> = {
  "what a line reaches that changes its folder": (text) => reachOf(numbered("cd", text, ";"), tmpdir()),
  "what a line reaches that copies files": (text) => reachOf(`cp ${numbered("{a,b}{a,b}{a,b}", text, " ")} {c,d}{c,d}`, tmpdir()),
};

/** This word followed by distinct words, one per ten characters of the text. */
function numbered(word: string, text: string, separator: string): string {
  return Array.from({ length: Math.ceil(text.length / 10) }, (_, index) => `${word} w${index}`).join(separator);
}

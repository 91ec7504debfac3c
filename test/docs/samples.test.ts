import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { buildPackage } from "../built-package.ts";
import { doubleProgram } from "../doubles/language-server/double-program.ts";
import { type LoopbackBackend, startLoopbackBackend } from "../doubles/language-server/loopback-backend.ts";
import { chatAnswer, chatStreamAnswer, type ScriptedModel, type ScriptedReply, startScriptedModel } from "../doubles/scripted-model.ts";
import { patience } from "../slowness.ts";
import { commandsOf, readSamples, type Sample } from "./markdown-samples.ts";
import { callTools, checkJson, isProgram, isSample, modelReplies, runCommands, runProgram, writeProject } from "./sample-project.ts";

/** Samples that cannot run here, by the start of the block or the command, with the reason. */
const notRun: Readonly<Record<string, string>> = {
  "README.md: npm ci && npm start": "installs packages; every clean clone begins with it",
  "README.md: npm create": "needs the published package; scripts/check-package.mjs does it with a packed one",
  "README.md: export OPENAI_BASE_URL": "the user's endpoint; the tests use their own",
  "docs/five-minutes.md: npm create": "needs the published package; scripts/check-package.mjs does it with a packed one",
  "docs/five-minutes.md: cd my-skills": "the same",
  "docs/five-minutes.md: npm test": "the same",
  "docs/fleet.md: npm install": "needs nats-server; test/interop/nats starts one, and the command",
  "docs/fleet.md: nats-server": "the same",
  "docs/fleet.md: skillhost": "the same",
  "docs/fleet.md: SKILLHOST_TOKEN": "the same",
  "docs/language-server.md: npm install": "brings GitHub's server, which npm run test:interop has; here a double of it is found",
  "docs/testing.md: skillhost test": "starts processes of the built package; test/interop/new-user/test-command.test.ts runs the command",
  "docs/performance.md: npm run": "takes ten minutes; it is run only to update the figures",
  'docs/command-line.md: {"ok":true,"command":"list"': "an answer, which test/cli compares with what the commands print",
  "docs/mcp-access.md: skillhost login": "needs a server and a user who signs in; test/cli/login.test.ts has both",
  "docs/mcp-access.md: skillhost logout": "the same",
};

const root = fileURLToPath(new URL("../../", import.meta.url));
const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
const documents = ["README.md", ...pages.map((name) => `docs/${name}`)];
const samples = documents.flatMap((path) => readSamples(join(root, path), path).filter(isSample));
const samplesOf = (document: string) => samples.filter((sample) => sample.document === document);
/** The pages on whose files the samples of a page build, from its line `<!-- continues skills.md -->`. */
const continued = new Map(
  documents.map((path) => {
    const [, names = ""] = /^<!-- continues (.*) -->$/m.exec(readFileSync(join(root, path), "utf8")) ?? [];
    return [path, names.split(" ").flatMap((name) => (name === "" ? [] : `docs/${name}`))] as const;
  }),
);
const withSamples = documents.filter((document) => samplesOf(document).length > 0);
const used = new Set<string>();
const isListed = (document: string, text: string): boolean => {
  const key = Object.keys(notRun).find((begin) => `${document}: ${text.replaceAll(/\s+/g, " ")}`.startsWith(begin));
  if (key !== undefined) used.add(key);
  return key !== undefined;
};

let scratch: string;
let service: Server;
let model: ScriptedModel;
let copilot: LoopbackBackend;
let replies: readonly ScriptedReply[] = [];

beforeAll(async () => {
  // The folder lies inside the package, so that its name and its dependencies resolve as they do for a user of the package.
  mkdirSync(join(root, ".skillhost"), { recursive: true });
  scratch = mkdtempSync(join(root, ".skillhost", "samples-"));
  // The service that the samples of HTTP tools call: it echoes the request.
  service = createServer(({ method, url, headers }, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ method, url, authorization: headers.authorization }));
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const adapt = (text: string): string =>
    text.replaceAll("https://weather.example.org", origin).replaceAll('"weather.example.org"', '"127.0.0.1"');
  mkdirSync(join(scratch, "examples"));
  for (const [name, text] of documentedExamples()) writeFileSync(join(scratch, "examples", name), text);
  for (const document of withSamples) {
    const before = continued.get(document)!.flatMap(samplesOf);
    const files = before.filter((sample) => !isProgram(sample));
    writeProject(folderOf(document), [...files, ...samplesOf(document)], adapt);
  }
  model = await startScriptedModel(({ body }) => {
    const [reply, ...rest] = replies;
    replies = rest;
    if (reply === undefined) return undefined;
    return body.stream === true ? chatStreamAnswer(reply) : chatAnswer(reply);
  });
  vi.stubEnv("OPENAI_BASE_URL", `${model.url}/v1`);
  // A CI service sets a variable with which a missing snapshot is a failure.
  vi.stubEnv("SKILLHOST_SNAPSHOTS", "update");
  copilot = await startLoopbackBackend(() => {
    const [reply, ...rest] = replies;
    replies = rest;
    return reply;
  });
  stubLanguageServer();
});

/** The examples in the comments of exported types, each as a module that imports the type. */
function documentedExamples(): readonly (readonly [file: string, text: string])[] {
  const folder = join(root, "docs/api");
  return readdirSync(folder).flatMap((page) => {
    const text = readFileSync(join(folder, page), "utf8");
    const entry = /^`import \{ … \} from "([^"]+)"`/m.exec(text)?.[1];
    const sections = text.split(/^## /m).slice(1);
    return sections.flatMap((section) => {
      const name = section.slice(0, section.indexOf("\n"));
      const example = /^@example\n```ts\n([\s\S]*?)```/m.exec(section)?.[1];
      return example === undefined ? [] : [[`${name}.ts`, `import type { ${name} } from "${entry}";\n${example}export {};\n`] as const];
    });
  });
}

/** Puts the double of the language server on the search path, so that nothing connects to the network. */
function stubLanguageServer(): void {
  const bin = join(scratch, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "copilot-language-server"), `#!/bin/sh\nexec "${process.execPath}" "${doubleProgram}" "$@"\n`, { mode: 0o755 });
  const { PATH: path, ...others } = copilot.environment(join(scratch, "home"));
  vi.stubEnv("PATH", `${bin}${delimiter}${path}`);
  for (const [name, value] of Object.entries(others)) vi.stubEnv(name, value);
}

afterAll(async () => {
  vi.unstubAllEnvs();
  await copilot[Symbol.asyncDispose]();
  service.close();
  await model.close();
  rmSync(scratch, { recursive: true, force: true });
});

test("every exported type of options has an example", () => {
  const named = readdirSync(join(root, "docs/api")).flatMap((page) => {
    const text = readFileSync(join(root, "docs/api", page), "utf8");
    return [...text.matchAll(/^## (\w*Options)$/gm)].map(([, name]) => `${name}.ts`);
  });
  expect(named.length).toBeGreaterThan(20);
  expect(named.toSorted()).toEqual(
    documentedExamples()
      .map(([file]) => file)
      .toSorted(),
  );
});

test(
  "every TypeScript sample and example has correct types",
  () => {
    const include = ["./**/*.ts", "./**/*.tsx", "../../examples/**/*.ts"];
    // Samples compile against the declarations of the package, as a user's compiler does.
    const declarations = join(buildPackage().folder, "dist");
    const paths = {
      skillhost: [join(declarations, "index.d.ts")],
      "skillhost/testing": [join(declarations, "testing.d.ts")],
      "skillhost/adapters/*": [join(declarations, "adapters/*.d.ts")],
      "skillhost/plugins/*": [join(declarations, "plugins/*/plugin.d.ts")],
    };
    const config = { extends: "../../tsconfig.json", compilerOptions: { customConditions: [], paths }, include };
    writeFileSync(join(scratch, "tsconfig.json"), JSON.stringify(config));
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const { stdout, stderr, status } = spawnSync(process.execPath, [compiler, "-p", scratch], { cwd: scratch, encoding: "utf8" });
    expect(`${stdout}${stderr}`.split("\n").filter((line) => line !== "")).toEqual([]);
    expect(status).toBe(0);
  },
  patience(60_000),
);

test.each(withSamples)(
  "every sample in %s works",
  async (document) => {
    const own = samplesOf(document);
    const folder = folderOf(document);
    const before = continued.get(document)!.flatMap(samplesOf);
    const tools = await callTools(folder, own);
    for (const sample of own) {
      if (isShown(document, sample)) continue;
      if (isProgram(sample)) await withModel(sample, () => runProgram(folder, sample));
      else if (sample.language === "sh")
        expect((await withModel(sample, () => runShell(folder, sample))).filter((line) => !isListed(document, line))).toEqual([]);
      else if (sample.language === "json") expect(checkJson(folder, sample), `${sample.place} has no file and no $schema`).toBe(true);
      else expect(sample.file, `${sample.place} says no file`).toBeTypeOf("string");
    }
    const around = [document, ...continued.get(document)!];
    const others = documents.filter((path) => continued.get(path)!.some((page) => around.includes(page))).flatMap(samplesOf);
    const uncalled = tools.filter((tool) => ![...before, ...own, ...others].some((sample) => calls(sample, tool)));
    expect(uncalled, "each tool that is shown is called").toEqual([]);
  },
  patience(60_000),
);

test("every sample that is listed as not run exists", () => {
  expect(Object.keys(notRun).filter((key) => !used.has(key))).toEqual([]);
});

/** True when a block must not run here. */
function isShown(document: string, sample: Sample): boolean {
  return sample.language === "sh" ? commandsOf(sample).every((line) => isListed(document, line)) : isListed(document, sample.text);
}

function runShell(folder: string, sample: Sample): Promise<readonly string[]> {
  return runCommands(folder, sample, { OPENAI_BASE_URL: `${model.url}/v1`, ...copilot.environment(join(scratch, "home")) });
}

/** Queues the model answers of the sample's directives; the sample must use all of them. */
async function withModel<T>(sample: Sample, run: () => Promise<T>): Promise<T> {
  replies = modelReplies(sample);
  const result = await run();
  expect(replies, `${sample.place}: unused answers of the model`).toEqual([]);
  return result;
}

function folderOf(document: string): string {
  return join(scratch, document.replaceAll(/[/.]/g, "-"));
}

function calls(sample: (typeof samples)[number], tool: string): boolean {
  if (sample.directives.some(({ name, rest }) => name === "call" && rest.startsWith(`${tool} `))) return true;
  if (sample.language === "sh") return commandsOf(sample).some((command) => command.includes(`skillhost call ${tool}`));
  if (sample.directives.some(({ name, rest }) => name === "model" && rest.startsWith(`calls ${tool} `))) return true;
  return isProgram(sample) && new RegExp(`\\.call(?:Tool)?\\("${tool}"`).test(sample.text);
}

// Counts what three flows run through: files, function entries, and switches from one file to another, of one warm run each.
//
//   npm run --silent build && node scripts/measure-switches.mjs [--order call|turn|save | --json] [--dist <dir>]
//
// --order prints the files of one flow in the order in which the run first enters them; --json prints that and the counts of all flows.
// --dist measures another build.
// The build is copied to a temporary directory, and each function of the copy reports that it was entered. A switch is an entry
// that follows one of another file, so a return to the caller counts only when the caller then enters a function.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { parseSync } from "oxc-parser";

const root = fileURLToPath(new URL("..", import.meta.url));
const warmUp = 3;

const flows = {
  call: { title: "session.callTool, one permission answer", measure: measureCall },
  turn: { title: "a second turn with one tool call, OpenAI wire", measure: measureTurn },
  save: { title: "a save of a tool file, until its tool is published", measure: measureSave },
};

const answerTool = {
  name: "answer",
  description: "Answers at once.",
  parameters: { type: "object", required: ["query"], properties: { query: { type: "string" } } },
  handler: ({ query }) => `The answer to ${query}.`,
};
const approveOnce = () => ({ kind: "approve-once" });

const { values: given } = parseArgs({
  options: {
    order: { type: "string" },
    json: { type: "boolean", default: false },
    dist: { type: "string", default: join(root, "build/dist") },
  },
});
if (given.order !== undefined && !Object.hasOwn(flows, given.order)) {
  console.error(`--order must be one of: ${Object.keys(flows).join(", ")}`);
  process.exit(2);
}

const place = mkdtempSync(join(tmpdir(), "skillhost-switches-"));
try {
  const files = copyInstrumented(resolve(given.dist), join(place, "dist"));
  process.env.SKILLHOST_HOME = join(place, "home");
  const library = await import(pathToFileURL(join(place, "dist", "index.js")).href);
  const names = given.order === undefined ? Object.keys(flows) : [given.order];
  const runs = [];
  for (const name of names)
    runs.push(
      summarize(
        name,
        (await flows[name].measure(library)).map((id) => files[id]),
      ),
    );
  if (given.json) console.log(JSON.stringify(Object.fromEntries(runs.map(({ name, ...run }) => [name, run]))));
  else if (given.order === undefined) printTable(runs);
  else for (const file of runs[0].files) console.log(file);
} finally {
  rmSync(place, { recursive: true, force: true });
}

function summarize(name, entered) {
  const switches = entered.filter((file, at) => at > 0 && file !== entered[at - 1]).length;
  return { name, files: [...new Set(entered)], entries: entered.length, switches };
}

function printTable(runs) {
  console.log("| flow | files | function entries | switches between files |\n|---|---|---|---|");
  for (const { name, files, entries, switches } of runs) {
    console.log(`| ${flows[name].title} | ${files.length} | ${entries} | ${switches} |`);
  }
}

/** Copies a build, with its functions instrumented. Returns the names of the sources by the numbers that entries report. */
function copyInstrumented(from, to) {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith(".map") && !path.endsWith(".d.ts") });
  cpSync(join(dirname(from), "package.json"), join(place, "package.json"));
  symlinkSync(join(root, "node_modules"), join(place, "node_modules"), "junction");
  const files = readdirSync(to, { recursive: true, encoding: "utf8" }).filter((name) => extname(name) === ".js");
  for (const [id, name] of files.entries()) {
    const file = join(to, name);
    writeFileSync(file, instrument(name, readFileSync(file, "utf8"), `globalThis.functionEntered?.(${id})`));
  }
  return files.map(sourceName);
}

function sourceName(name) {
  const source = name.split(sep).join("/").replace(/\.js$/, ".ts");
  return source.startsWith("plugins/") ? source : `src/${source}`;
}

/** Puts a call at the beginning of each function. Lines stay where they are. */
function instrument(name, source, call) {
  const { program, errors } = parseSync(name, source, { sourceType: "module" });
  if (errors.length > 0) throw new Error(`${name} cannot be parsed: ${errors[0].message}`);
  const insertions = [];
  walk(program, (node) => {
    if (!/^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)) return;
    const { body } = node;
    if (body.type === "BlockStatement") insertions.push([body.start + 1, ` ${call};`]);
    else insertions.push([body.start, `(${call}, `], [body.end, ")"]);
  });
  // From the end, so that the positions before stay true.
  insertions.sort(([a], [b]) => b - a);
  return insertions.reduce((text, [at, inserted]) => text.slice(0, at) + inserted + text.slice(at), source);
}

function walk(node, visit) {
  if (Array.isArray(node)) {
    for (const item of node) walk(item, visit);
    return;
  }
  if (typeof node !== "object" || node === null) return;
  if (typeof node.type === "string") visit(node);
  for (const child of Object.values(node)) walk(child, visit);
}

/** Runs something, and returns the numbers of the files whose functions were entered meanwhile, or until `stop` was called. */
async function record(work) {
  await settle();
  const entries = [];
  const stop = () => {
    globalThis.functionEntered = undefined;
  };
  globalThis.functionEntered = (id) => entries.push(id);
  try {
    await work(stop);
  } finally {
    stop();
  }
  return entries;
}

/** Waits until an earlier run has left nothing to be done in the background, such as the end of a burst of saves. */
async function settle() {
  for (let attempt = 0; attempt < 50; attempt++) {
    let isEntered = false;
    globalThis.functionEntered = () => {
      isEntered = true;
    };
    await new Promise((resolve) => setTimeout(resolve, 100));
    globalThis.functionEntered = undefined;
    if (!isEntered) return;
  }
}

/** The entries of the last of some runs. */
async function lastOf(run) {
  let entries = [];
  for (let n = 0; n <= warmUp; n++) entries = await run(n);
  return entries;
}

function hostOptions(name) {
  return { skillDirectories: [], plugins: [], packageSkills: false, watch: false, sessionsDirectory: join(place, name, "sessions") };
}

async function measureCall({ createHost }) {
  const host = await createHost(hostOptions("call"));
  const session = await host.createSession({ tools: [answerTool], onPermissionRequest: approveOnce });
  const entries = await lastOf(async () => {
    await session.flush();
    return record(async (stop) => {
      const { resultType } = await session.callTool("answer", { query: "it" });
      stop();
      if (resultType !== "success") throw new Error(`The call ended with ${resultType}.`);
    });
  });
  await host.close();
  return entries;
}

async function measureTurn({ createHost }) {
  const endpoint = await openEndpoint();
  const host = await createHost(hostOptions("turn"));
  const session = await host.createSession({
    tools: [answerTool],
    onPermissionRequest: approveOnce,
    provider: { type: "openai", baseUrl: endpoint.url },
    model: "test-model",
  });
  const ask = async (stop) => {
    const { content } = await session.sendAndWait({ prompt: "Answer it." });
    stop?.();
    if (content !== "Done.") throw new Error(`The model ended with ${content}.`);
  };
  await ask();
  await session.flush();
  const entries = await record(ask);
  await host.close();
  await endpoint.close();
  return entries;
}

/** A model that calls the tool `answer` and then ends its turn. Each reply is one write, so that runs do not differ in chunks. */
async function openEndpoint() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const isAnswered = JSON.parse(body).messages.at(-1).role === "tool";
    response
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(isAnswered ? replyWith({ content: "Done." }, "stop") : callOfTool());
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const close = () => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  };
  return { url: `http://127.0.0.1:${server.address().port}/v1`, close };
}

function callOfTool() {
  const call = { index: 0, id: "call-1", type: "function", function: { name: "answer", arguments: '{"query":"it"}' } };
  return replyWith({ tool_calls: [call] }, "tool_calls");
}

function replyWith(delta, finishReason) {
  const chunk = (choice) => ({
    id: "reply",
    object: "chat.completion.chunk",
    model: "test-model",
    choices: [{ index: 0, finish_reason: null, ...choice }],
  });
  const chunks = [chunk({ delta: { role: "assistant", ...delta } }), chunk({ delta: {}, finish_reason: finishReason })];
  return `${chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("")}data: [DONE]\n\n`;
}

async function measureSave({ createHost }) {
  const skill = join(place, "save", "skills", "saved");
  const tool = join(skill, "tools", "saved.ts");
  mkdirSync(dirname(tool), { recursive: true });
  writeFileSync(join(skill, "SKILL.md"), "---\nname: saved\ndescription: Is saved while it is watched.\n---\n\nUse its tool.\n");
  const save = (description) =>
    writeFileSync(
      tool,
      `import { defineTool } from "skillhost";\nexport default defineTool("saved", { description: "${description}", handler: () => "done" });\n`,
    );
  save("as first saved");
  const host = await createHost({ ...hostOptions("save"), skillDirectories: [dirname(skill)], watch: true });
  const session = await host.createSession({ persist: false });
  const isPublished = (description) => session.tools.some((definition) => definition.description === description);
  if (!isPublished("as first saved")) throw new Error(`The tool of ${relative(place, tool)} was not loaded.`);
  const entries = await lastOf((n) =>
    record(
      (stop) =>
        new Promise((published) => {
          const description = `as saved the time ${n}`;
          const listening = session.onChanged(() => {
            if (!isPublished(description)) return;
            stop();
            listening[Symbol.dispose]();
            published();
          });
          save(description);
        }),
    ),
  );
  await host.close();
  return entries;
}

// Compares what skillhost answers to clients of the Copilot SDK with what a version of the SDK or of the official runtime has.
//
//     node scripts/compare-copilot-contract.mjs [--dist <folder>] [--since <folder>] <folder>    (after a build, which --dist names)
//
// The folder is `dist` of an installed @github/copilot-sdk, or the one with the schemas of an official runtime. Prints how many
// of its methods are answered, answered emptily and refused, with the reasons, and the names that were added or removed. With the schemas
// of an earlier runtime in --since, also which members of parameters, results and events have changed since.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const source = (path) => readFileSync(fileURLToPath(new URL(`../src/${path}`, import.meta.url)), "utf8");

const { values, positionals } = parseArgs({ allowPositionals: true, options: { dist: { type: "string" }, since: { type: "string" } } });
const dist = values.dist ?? fileURLToPath(new URL("../build/dist", import.meta.url));
const built = (file) => pathToFileURL(join(dist, "servers/copilot/methods", file)).href;
const [folder] = positionals;
if (folder === undefined || !existsSync(folder)) {
  console.error("Name the folder of an SDK (node_modules/@github/copilot-sdk/dist) or of the schemas of a runtime.");
  process.exit(2);
}

const { families } = await import(built("dispatch.js"));
const { handshake } = await import(built("handshake.js"));
const { absentServices } = await import(built("absent-services.js"));
const { unsupported } = await import(built("unsupported.js"));
const answered = new Set(Object.keys(handshake));
for (const [, load] of families) for (const name of Object.keys(await load())) answered.add(name);
const reasons = new Map(Object.entries(unsupported).flatMap(([reason, names]) => names.map((name) => [name, reason])));

const theirs = existsSync(join(folder, "api.schema.json")) ? ofSchemas() : ofSdk();
const known = (name) => answered.has(name) || reasons.has(name);
const refused = theirs.methods.filter((name) => reasons.has(name));
const empty = theirs.methods.filter((name) => Object.hasOwn(absentServices, name));
const supported = theirs.methods.filter((name) => answered.has(name) && !Object.hasOwn(absentServices, name));
console.log(
  `${theirs.methods.length} methods: ${supported.length} supported, ${empty.length} answered by what is absent here, ${refused.length} refused.`,
);
for (const reason of new Set(refused.map((name) => reasons.get(name)))) {
  console.log(`  ${reason}`);
  for (const name of refused) if (reasons.get(name) === reason) console.log(`    ${name}`);
}
list(
  "Added there, unknown here:",
  theirs.methods.filter((name) => !known(name)),
);
list(
  "Removed there, known here:",
  [...answered, ...reasons.keys()].filter((name) => !theirs.methods.includes(name)),
);

const emitted = new Set(
  ["session/history/event-types.ts", "servers/copilot/sessions/copilot-events.ts"].flatMap((file) =>
    [...source(file).matchAll(/"([a-z_]+(?:\.[a-z_]+)+)"|\b(abort):/g)].map(([, name, word]) => name ?? word),
  ),
);
if (theirs.events.length > 0) {
  const never = theirs.events.filter((name) => !emitted.has(name));
  console.log(`${theirs.events.length} events: ${theirs.events.length - never.length} are emitted here.`);
  list("Never emitted here:", never);
}

if (values.since !== undefined) {
  const [before, after] = [shapesIn(values.since), shapesIn(folder)];
  const changes = [...after].flatMap(([name, shape]) => (before.has(name) ? diffShapes(name, before.get(name), shape) : []));
  list("Changed there:", changes);
}

/** The members of each method's parameters and result, and of each event's data, with what is said of them. */
function shapesIn(path) {
  const read = (file) => JSON.parse(readFileSync(join(path, file), "utf8"));
  const api = read("api.schema.json");
  const events = read("session-events.schema.json");
  const shapes = new Map();
  for (const group of ["server", "session", "clientSession", "clientGlobal"]) {
    for (const method of methodSchemasIn(api[group])) {
      for (const part of ["params", "result"]) shapes.set(`${method.rpcMethod} ${part}`, membersOf(method[part], api));
    }
  }
  for (const { $ref } of events.definitions.SessionEvent.anyOf) {
    const { type, data } = events.definitions[$ref.split("/").at(-1)].properties;
    shapes.set(type.const, membersOf(data, events));
  }
  return shapes;
}

function methodSchemasIn(group) {
  if (typeof group !== "object" || group === null) return [];
  return typeof group.rpcMethod === "string" ? [group] : Object.values(group).flatMap(methodSchemasIn);
}

/** By path; `!` marks a required member. Members of members are part of them, as far as they are objects. */
function membersOf(schema, root, path = "", found = new Map(), depth = 0) {
  const { properties = {}, required = [], items } = resolved(schema, root);
  if (items !== undefined) membersOf(items, root, `${path}[]`, found, depth + 1);
  for (const [name, member] of Object.entries(properties)) {
    const at = path === "" ? name : `${path}.${name}`;
    const { type, enum: values, const: value, anyOf } = resolved(member, root);
    const kinds = values ?? (value === undefined ? (anyOf === undefined ? type : "union") : value);
    found.set(at, `${JSON.stringify(kinds ?? "any")}${required.includes(name) ? "!" : ""}`);
    if (depth < 4) membersOf(member, root, at, found, depth + 1);
  }
  return found;
}

function resolved(schema, root) {
  let current = schema ?? {};
  for (let steps = 0; typeof current.$ref === "string" && steps < 20; steps++) {
    const path = current.$ref.replace(/^#\//, "").split("/");
    current = path.reduce((value, key) => value?.[key], root) ?? {};
  }
  return current;
}

function diffShapes(name, before, after) {
  const paths = [...new Set([...before.keys(), ...after.keys()])];
  return paths.flatMap((path) => {
    const [old, current] = [before.get(path), after.get(path)];
    if (old === current) return [];
    return [
      `${name}: ${path} ${old === undefined ? "was added" : current === undefined ? "was removed" : `was ${old}`}${current === undefined ? "" : `, is ${current}`}`,
    ];
  });
}

function list(title, names) {
  console.log(`${title} ${names.length === 0 ? "none" : ""}`.trimEnd());
  for (const name of names.sort()) console.log(`  ${name}`);
}

function ofSchemas() {
  const read = (file) => JSON.parse(readFileSync(join(folder, file), "utf8"));
  const { server, session } = read("api.schema.json");
  const { SessionEvent, ...definitions } = read("session-events.schema.json").definitions;
  const events = SessionEvent.anyOf.map(({ $ref }) => definitions[$ref.split("/").at(-1)].properties.type.const);
  return { methods: [server, session].flatMap(methodsIn).sort(), events };
}

function methodsIn(group) {
  if (typeof group !== "object" || group === null) return [];
  return typeof group.rpcMethod === "string" ? [group.rpcMethod] : Object.values(group).flatMap(methodsIn);
}

/** The requests in the code of the SDK, and the types of its generated events. */
function ofSdk() {
  const files = [folder, join(folder, "generated")].flatMap((parent) =>
    existsSync(parent) ? readdirSync(parent).map((file) => join(parent, file)) : [],
  );
  const texts = (end) => files.filter((file) => file.endsWith(end)).map((file) => readFileSync(file, "utf8"));
  const methods = texts(".js").flatMap((text) => [...text.matchAll(/sendRequest\(\s*"([\w.]+)"/g)].map(([, name]) => name));
  const events = files.filter((file) => file.endsWith("session-events.d.ts")).flatMap((file) => typesIn(readFileSync(file, "utf8")));
  return { methods: [...new Set(methods)].sort(), events: [...new Set(events)] };
}

/** Each event is an interface with data, whose type is one text. */
function typesIn(text) {
  const interfaces = text.split(/\nexport interface /).filter((part) => /^\w+Event \{/.test(part));
  return interfaces.flatMap((part) => [...part.matchAll(/\n {4}type: "([\w.]+)";/g)].map(([, name]) => name));
}

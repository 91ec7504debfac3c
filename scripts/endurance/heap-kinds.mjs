import { readFileSync } from "node:fs";

// Prints what a heap snapshot holds, by kind, as JSON: a program of its own, so that what it needs is not in what is measured.
const { snapshot, nodes, strings } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { node_fields: fields, node_types: types } = snapshot.meta;
const at = Object.fromEntries(fields.map((field, index) => [field, index]));
/** What the engine makes of functions: compiled code, its feedback, and hidden classes. It grows while functions become hot. */
const ofCode = new Set(["code", "object shape"]);
/** Which code depends on a hidden class, and which classes are kept: other uses of these lists are few. */
const listOfCode = "system / WeakArrayList";
const kinds = {};
let [code, data] = [0, 0];
for (let start = 0; start < nodes.length; start += fields.length) {
  const type = types[at.type][nodes[start + at.type]];
  const bytes = nodes[start + at.self_size];
  if (ofCode.has(type) || strings[nodes[start + at.name]] === listOfCode) code += bytes;
  else data += bytes;
  const isNamed = type === "object" || type === "closure";
  const kind = isNamed ? `${type} ${strings[nodes[start + at.name]].slice(0, 60)}` : `(${type})`;
  kinds[kind] ??= { number: 0, bytes: 0 };
  kinds[kind].number++;
  kinds[kind].bytes += bytes;
}
process.stdout.write(JSON.stringify({ code, data, kinds }));

// The tools that the HTTP benchmark calls: one that computes, one that fetches a page, one that keeps values. Each server offers the same.
import { createHash } from "node:crypto";

const digestRounds = 100;
const values = new Map();

export const workload = [
  {
    name: "digest",
    description: "Hashes a text many times.",
    schema: { text: "What to hash." },
    run: ({ text }) => {
      let digest = text;
      for (let round = 0; round < digestRounds; round++) digest = createHash("sha256").update(digest).digest("hex");
      return digest;
    },
  },
  {
    name: "fetch_page",
    description: "Fetches a page.",
    schema: { url: "The page's address." },
    run: async ({ url }) => (await fetch(url)).text(),
  },
  {
    name: "keep_value",
    description: "Keeps a value by its key, and answers with the one before.",
    schema: { key: "Which value.", value: "The new value." },
    run: ({ key, value }) => {
      const before = values.get(key) ?? "nothing";
      values.set(key, value);
      return before;
    },
  },
];

/** JSON Schema of a tool's texts. */
export function jsonSchemaOf({ schema }) {
  const properties = Object.fromEntries(Object.entries(schema).map(([name, description]) => [name, { type: "string", description }]));
  return { type: "object", properties, required: Object.keys(schema) };
}

/** Says to the benchmark, which started this process, where the server is. */
export function announce(url) {
  console.log(JSON.stringify({ url }));
}

// Assembling a catalog of thousands of tools, beside the least that it takes: a map and a sort.
import { built } from "./support/built.mjs";
import { median } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";

const rounds = 60;

const { createTool } = await built("tools/create/create-tool.js");
const { createCatalogView } = await built("session/catalog/catalog-view.js");
const { assembleCatalog, createCatalogMemo } = await built("session/catalog/assemble-catalog.js");

title("Assembling a catalog, ms");
const measured = [2000, 10_000].flatMap((size) => measure(size));
table(measured.map(({ limit, ...row }) => row));
for (const { tools, work, "median ms": value, limit } of measured)
  if (limit) goal(`${tools.toLocaleString("en-US")} tools, ${work}`, value, limit, "ms");

function measure(count) {
  const sources = makeSources(count);
  const open = createCatalogView({});
  const filtered = createCatalogView({ excludedTools: ["skill:group_3", "t_17", "custom:*"] });
  const memo = createCatalogMemo();
  const works = [
    { work: "map and sort", run: () => leastWork(sources) },
    { work: "assemble, no filter", run: () => assembleCatalog(sources, open), limit: count === 2000 ? 3 : 20 },
    { work: "assemble, three patterns", run: () => assembleCatalog(sources, filtered) },
    { work: "assemble and sign", run: () => assembleCatalog(sources, open).signature },
    { work: "an equal view again", run: () => memo(sources, open) },
  ];
  for (const each of works) Object.assign(each, { first: timeOf(each.run), times: [] });
  // In turn, so that what else the machine does meets all of them.
  for (let round = 0; round < rounds; round++) for (const { run, times } of works) times.push(timeOf(run));
  const floor = median(works[0].times);
  return works.map(({ work, first, times, limit }) => ({
    tools: count,
    work,
    "first ms": first,
    "median ms": median(times),
    "least ms": Math.min(...times),
    "to map and sort": ratio(median(times), floor),
    limit,
  }));
}

/** Skills of ten tools each, in an order that is not the catalog's. */
function makeSources(count) {
  const tools = Array.from({ length: count }, (_, n) => {
    const id = (n * 7919) % count;
    const source = `group_${id % (count / 10)}`;
    const parameters = {
      type: "object",
      properties: { query: { type: "string", description: `What to look for in ${id}.` } },
      required: ["query"],
    };
    const definition = { name: `t_${id}`, description: `Answers questions about ${id}.`, parameters, handler: () => id };
    return createTool(definition, { kind: "skill", source, nativeName: `t_${id}` });
  });
  return [{ kind: "skill", id: "skills", tools }];
}

function leastWork(sources) {
  const byName = new Map();
  for (const { tools } of sources) for (const tool of tools) byName.set(tool.definition.name, tool);
  return [...byName.values()].sort((a, b) => (a.definition.name < b.definition.name ? -1 : 1));
}

function timeOf(run) {
  const begin = performance.now();
  run();
  return performance.now() - begin;
}

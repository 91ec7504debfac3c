// What a round with the model costs beside the model and the tool, and how long the search over many tools takes.
import { built } from "./support/built.mjs";
import { median, quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const roundsPerTurn = 200;
const turns = 15;

const { createHost, defineTool, approveAll } = await built("index.js");
const { assembleCatalog } = await built("session/catalog/assemble-catalog.js");
const { createCatalogView } = await built("session/catalog/catalog-view.js");
const { createTool } = await built("tools/create/create-tool.js");
const { searchTools } = await built("session/catalog/tool-search.js");

await measureTurns();
measureSearch();

async function measureTurns() {
  title(`Our own time per round with a model that answers at once, ms (${turns} turns of ${roundsPerTurn} rounds)`);
  const place = tempFolder();
  const host = await createHost({ skillDirectories: [], watch: false, sessionsDirectory: place.base });
  const floor = await bareLoop();
  const rows = [];
  for (const [name, toolCount, options] of [
    ["one tool", 1, { persist: false }],
    ["100 tools", 100, { persist: false, toolSearch: { enabled: false } }],
    ["100 tools, kept in a log", 100, { toolSearch: { enabled: false } }],
  ]) {
    const tools = Array.from({ length: toolCount }, (_, n) =>
      defineTool(`tool_${n}`, { description: `Answers ${n}.`, parameters: { type: "object" }, handler: () => "done" }),
    );
    const times = [];
    for (let turn = 0; turn < turns; turn++) {
      const session = await host.createSession({
        tools,
        chatModel: modelOf(roundsPerTurn),
        onPermissionRequest: approveAll,
        maxIterations: roundsPerTurn + 1,
        ...options,
      });
      await session.ready();
      const begin = performance.now();
      await session.sendAndWait({ prompt: "Go on." });
      times.push((performance.now() - begin) / roundsPerTurn);
      await session.disconnect();
    }
    rows.push({ session: name, median: median(times), least: Math.min(...times), p90: quantile(times, 0.9) });
  }
  await host.close();
  place.remove();
  table([
    { session: "a loop that only asks the model", "median ms": floor, "to the bare loop": "1×" },
    ...rows.map(({ session, median: value, least, p90 }) => ({
      session,
      "median ms": value,
      "least ms": least,
      "p90 ms": p90,
      "to the bare loop": ratio(value, floor),
    })),
  ]);
  for (const row of rows) goal(`a round, ${row.session}`, row.median, 1, "ms");
}

/** Calls a tool in each round until it has had enough. */
function modelOf(rounds) {
  let round = 0;
  return {
    id: "bench-model",
    address: "bench.test",
    async complete() {
      round++;
      const toolCalls = round <= rounds ? [{ id: `call-${round}`, name: "tool_0", argumentsText: "{}", arguments: {} }] : [];
      const finishReason = toolCalls.length > 0 ? "tool-calls" : "stop";
      return {
        content: toolCalls.length > 0 ? "" : "Done.",
        toolCalls,
        finishReason,
        model: "bench-model",
        chunkCount: 1,
        attempts: 1,
        duration: 0,
      };
    },
  };
}

async function bareLoop() {
  const times = [];
  for (let turn = 0; turn < turns; turn++) {
    const model = modelOf(roundsPerTurn);
    const begin = performance.now();
    while ((await model.complete()).toolCalls.length > 0);
    times.push((performance.now() - begin) / roundsPerTurn);
  }
  return median(times);
}

function measureSearch() {
  title("Searching 10,000 tools, ms");
  const tools = Array.from({ length: 10_000 }, (_, n) =>
    createTool(
      { name: `server-${n % 40}-tool_${n}`, description: `${describe(n)} ${"Takes an account and a range of dates. ".repeat(4)}` },
      { kind: "mcp", source: `server-${n % 40}`, nativeName: `tool_${n}` },
    ),
  );
  const catalog = assembleCatalog([{ kind: "mcp", id: "many", tools }], createCatalogView({}));
  searchTools(catalog, "warm up");
  const rows = [
    ["usual", "invoice"],
    ["usual", "(list|get)_?.*invoice"],
    ["usual", "server-1[0-9]-tool_\\d+7$"],
    ["any", "(a?){40}a{40}z"],
    ["any", "(.*a){20}z"],
    ["any", `(${"[a-z]+_?".repeat(20)})+Z$`],
    ["any", `${"(x|y|z)?".repeat(24)}q`],
    ["any", `${"\\w*".repeat(60)}!`],
  ].map(([sort, pattern]) => {
    const times = Array.from({ length: 25 }, () => {
      const begin = performance.now();
      searchTools(catalog, pattern);
      return performance.now() - begin;
    });
    return { sort, pattern, median: median(times), first: times[0] };
  });
  table(
    rows.map(({ sort, pattern, median: value, first }) => ({ sort, pattern: pattern.slice(0, 40), "first ms": first, "median ms": value })),
  );
  for (const [sort, limit] of [
    ["usual", 25],
    ["any", 60],
  ]) {
    const worst = Math.max(...rows.filter((row) => row.sort === sort).map((row) => row.median));
    goal(`the slowest of the ${sort} patterns`, worst, limit, "ms");
  }
}

function describe(n) {
  return ["Lists the invoices of a customer.", "Reads one file.", "Sends a message.", "Finds issues by their labels."][n % 4];
}

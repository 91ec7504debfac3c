// What an inspector costs a call: none, one that serves a page that is not open, and one with a reader that follows everything.
import { built } from "./support/built.mjs";
import { quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";

const callsPerRound = 1000;
const rounds = 60;
const warmUp = 10;

const { createHost, defineTool } = await built("index.js");

const parameters = { type: "object", required: ["query"], properties: { query: { type: "string" } } };
const tool = defineTool("quick", { description: "Answers at once.", parameters, handler: ({ query }) => query, skipPermission: true });

title(`Cost of an inspector, µs a call (${rounds} rounds of ${callsPerRound.toLocaleString("en-US")} calls each)`);
const variants = [
  await variant("no inspector"),
  await variant("an inspector without a reader", { serves: true }),
  await variant("an inspector with a reader", { serves: true, reads: true }),
];
// In turn, so that what else the machine does meets all of them.
for (let round = -warmUp; round < rounds; round++) {
  for (const { session, times, waits } of variants) {
    const begin = performance.now();
    for (let call = 0; call < callsPerRound; call++) await session.callTool("quick", { query: "x" });
    const called = performance.now();
    // What is sent is made after the turn of the event loop in which it happened: all of it counts, too.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    if (round < 0) continue;
    times.push(((called - begin) / callsPerRound) * 1000);
    waits.push(((performance.now() - begin) / callsPerRound) * 1000);
  }
}
const medians = variants.map(({ times }) => quantile(times, 0.5));
table(
  variants.map(({ name, times, waits, received }, index) => ({
    host: name,
    "call, median µs": medians[index],
    "with what follows, median µs": quantile(waits, 0.5),
    "p90 µs": quantile(times, 0.9),
    "over none µs": medians[index] - medians[0],
    "to none": ratio(medians[index], medians[0]),
    "MB received": received() / 1e6,
  })),
);
goal("an attached inspector, over none", medians[1] - medians[0], 5, "µs");
goal("one with a reader, over none", medians[2] - medians[0], 5, "µs");
for (const { close } of variants) await close();

async function variant(name, { serves = false, reads = false } = {}) {
  const host = await createHost({ skillDirectories: [], plugins: [], watch: false });
  const inspector = serves ? await host.inspect() : undefined;
  const session = await host.createSession({ tools: [tool] });
  let bytes = 0;
  const controller = new AbortController();
  if (reads) {
    const headers = { Authorization: `Bearer ${inspector.token}` };
    const response = await fetch(`http://127.0.0.1:${inspector.port}/feed`, { headers, signal: controller.signal });
    const follow = async () => {
      for await (const chunk of response.body) bytes += chunk.length;
    };
    follow().catch(() => {});
  }
  const close = async () => {
    controller.abort();
    await inspector?.[Symbol.asyncDispose]();
    await host.close();
  };
  return { name, session, times: [], waits: [], received: () => bytes, close };
}

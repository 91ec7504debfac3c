// What a call costs beside the handler itself: checks, permission, hooks, events.
import { built } from "./support/built.mjs";
import { quantile } from "./support/measure.mjs";
import { goal, ratio, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

// Short rounds, so that few of them are interrupted by what else the machine does.
const callsPerRound = 2000;
const rounds = 150;
const warmUp = 20;

const { createHost, defineTool, approveAll } = await built("index.js");

const parameters = {
  type: "object",
  required: ["query"],
  properties: { query: { type: "string" }, limit: { type: "integer", default: 20 }, tags: { type: "array", items: { type: "string" } } },
};
const args = { query: "account-3", tags: ["open", "checked"] };
const handler = ({ query, limit }) => `${query} ${limit}`;
const asyncHandler = async ({ query, limit }) => `${query} ${limit}`;
const tools = [
  defineTool("quick", { description: "Answers at once.", parameters, handler, skipPermission: true }),
  defineTool("later", { description: "Answers with a promise.", parameters, handler: asyncHandler, skipPermission: true }),
  defineTool("asked", { description: "Needs permission.", parameters, handler }),
];

title(`Cost of a call, µs (${rounds} rounds of ${callsPerRound.toLocaleString("en-US")} calls each)`);
const place = tempFolder();
const host = await createHost({ skillDirectories: [], watch: false, sessionsDirectory: place.base });
const variants = [
  { name: "handler alone, awaited", run: async () => void (await handler({ ...args, limit: 20 })) },
  { name: "async handler alone, awaited", run: async () => void (await asyncHandler({ ...args, limit: 20 })) },
  ...(await sessionVariants("no sink", { limit: 3 })),
  ...(await sessionVariants("three listeners to everything", { listeners: 3, limit: 8 })),
  ...(await sessionVariants("two hooks", { options: { hooks: { onPreToolUse: () => undefined, onPostToolUse: () => undefined } } })),
  ...(await sessionVariants("three hooks and a rule", {
    options: {
      hooks: { onPreToolUse: [() => undefined, () => undefined], onPostToolUse: () => undefined },
      permissions: { allow: ["asked"] },
    },
    limit: 12,
    only: "asked",
  })),
  ...(await sessionVariants("three async hooks and a rule", {
    options: {
      hooks: { onPreToolUse: [async () => undefined, async () => undefined], onPostToolUse: async () => undefined },
      permissions: { allow: ["asked"] },
    },
    limit: 12,
    only: "asked",
  })),
  // A log keeps every call: fewer of them, so that it stays small.
  ...(await sessionVariants("kept in a log", { options: { persist: true } })).slice(0, 1).map((variant) => ({ ...variant, rounds: 20 })),
];
for (const variant of variants) variant.times = [];
// Rounds of all variants in turn, so that what else the machine does meets all of them.
for (let round = -warmUp; round < rounds; round++) {
  for (const variant of variants) {
    if (round >= (variant.rounds ?? rounds)) continue;
    const took = await timeOf(variant.run);
    if (round >= 0) variant.times.push(took);
  }
}
await host.close();
place.remove();

const bare = Object.fromEntries(variants.slice(0, 2).map(({ name, times }) => [name.startsWith("async"), quantile(times, 0.5)]));
const overheadOf = ({ times, isAsync = false }) => quantile(times, 0.5) - bare[isAsync];
table(
  variants.map((variant) => ({
    call: variant.name,
    "median µs": quantile(variant.times, 0.5),
    "least µs": Math.min(...variant.times),
    "p90 µs": quantile(variant.times, 0.9),
    "over the handler µs": variant.isSession ? overheadOf(variant) : undefined,
    "to the handler alone": ratio(quantile(variant.times, 0.5), bare[variant.isAsync ?? false]),
  })),
);
for (const variant of variants) if (variant.limit !== undefined) goal(variant.name, overheadOf(variant), variant.limit, "µs");

async function sessionVariants(name, { listeners = 0, limit, only, options = {} }) {
  const session = await host.createSession({ tools, onPermissionRequest: approveAll, persist: false, ...options });
  let heard = 0;
  for (let n = 0; n < listeners; n++) session.on(() => heard++);
  const call = (tool) => async () => expectSuccess(await session.callTool(tool, args));
  let id = 0;
  const prepareAndRun = async () => {
    const [prepared] = await session.prepare([{ id: `call-${id++}`, name: "quick", arguments: args }]);
    expectSuccess((await session.run(prepared)).result);
  };
  const asked = { name: `callTool, permission asked, ${name}`, run: call("asked"), isSession: true };
  if (only !== undefined) return [{ ...asked, limit }];
  return [
    { name: `callTool, ${name}`, run: call("quick"), isSession: true, limit },
    { name: `prepare and run, ${name}`, run: prepareAndRun, isSession: true },
    { name: `callTool, async handler, ${name}`, run: call("later"), isSession: true, isAsync: true },
    asked,
  ];
}

function expectSuccess({ resultType, textResultForLlm }) {
  if (resultType !== "success" || textResultForLlm !== "account-3 20") throw new Error(`${resultType}: ${textResultForLlm}`);
}

async function timeOf(run) {
  const begin = performance.now();
  for (let call = 0; call < callsPerRound; call++) await run();
  return ((performance.now() - begin) / callsPerRound) * 1000;
}

// Owns a session of a fleet until it is killed, and prints what is acknowledged: `node session-owner.mjs <module of the plugin> <address> <session>`.
const [, , plugin, servers, sessionId] = process.argv;
const { createSessionStore } = await import(plugin);
const store = createSessionStore({ servers, lease: 500 });
const say = (text) => process.stdout.write(`${text}\n`);
store.attach({
  handOver: () => "It keeps it.",
  lost: (_, { code }) => say(`lost ${code}`),
  report: ({ code }) => say(`reported ${code}`),
});

/** Another owner's lease may have to run out first. */
async function own() {
  for (;;) {
    try {
      return await store.open(sessionId);
    } catch (error) {
      if (error.code === "SESSION_NOT_FOUND") return store.create(sessionId);
      if (error.code !== "SESSION_IN_USE") throw error;
      say("in use");
    }
  }
}

const log = await own();
const { records } = await log.read();
let n = records.length;
say(`owns ${n}`);
for (;;) {
  const count = 1 + Math.floor(Math.random() * 20);
  for (let each = 0; each < count; each++) log.append({ n: n++, text: "x".repeat(Math.floor(Math.random() * 3_000)) });
  try {
    await log.flush();
    say(`stored ${n}`);
  } catch (error) {
    say(`failed ${error.code}`);
    if (error.code === "SESSION_MOVED") break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
say("moved");
await store[Symbol.asyncDispose]().catch(() => {});

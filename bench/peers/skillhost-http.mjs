// Serves the tools of the HTTP benchmark by the library, from a skill. The limit of requests for each address is raised: all clients
// of the benchmark have one address.
import { built } from "../support/built.mjs";
import { announce } from "../support/http-workload.mjs";

const { createHost, serveMcp } = await built("index.js");
const [directory] = process.argv.slice(2);
const host = await createHost({ skillDirectories: [directory], watch: false, trust: { folders: [directory] } });
const server = await serveMcp(host, {
  transport: "http",
  port: 0,
  token: false,
  maxRequests: 100_000_000,
  session: { permissions: { allow: ["*"] } },
});
announce(server.url);

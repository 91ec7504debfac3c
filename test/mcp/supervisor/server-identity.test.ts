import { resolve } from "node:path";
import { expect, test } from "vitest";
import type { McpServerSpec } from "../../../src/formats/mcp/mcp-server-spec.ts";
import { identityOf, resolveServer } from "../../../src/mcp/supervisor/server-identity.ts";
import { localSpec, remoteSpec } from "../supervisor-kit.ts";

const idOf = (spec: McpServerSpec, folder = "/work"): string => identityOf(resolveServer(spec, folder));
const local = localSpec("a", { command: "srv", args: ["x", "y"], env: { A: "1", B: "2" } });
const remote = remoteSpec("a", { headers: { "X-Key": "k", Authorization: "Bearer planted" } });

test.each<[string, McpServerSpec, McpServerSpec]>([
  ["name, filter, timeout", local, { ...local, name: "b", tools: ["x"], timeout: 5 }],
  ["order of the environment", local, { ...local, env: { B: "2", A: "1" } }],
  ["spelling of the folder", { ...local, cwd: "sub" }, { ...local, cwd: "/work/sub/../sub" }],
  ["no folder and the working directory", local, { ...local, cwd: "/work" }],
  ["case and order of headers", remote, { ...remote, headers: { authorization: "Bearer planted", "x-key": "k" } }],
  ["name, where the configuration says who we are", remote, { ...remote, name: "b" }],
])("servers share a connection: %s", (_what, one, other) => {
  expect(idOf(one)).toBe(idOf(other));
});

test.each<[string, McpServerSpec, McpServerSpec]>([
  ["command", local, { ...local, command: "other" }],
  ["arguments", local, { ...local, args: ["x y"] }],
  ["order of arguments", local, { ...local, args: ["y", "x"] }],
  ["environment", local, { ...local, env: { A: "1" } }],
  ["folder", local, { ...local, cwd: "sub" }],
  ["address", remote, { ...remote, url: "https://b.test/mcp" }],
  ["transport", remote, { ...remote, type: "sse" }],
  ["header", remote, { ...remote, headers: { ...remote.headers, "X-Key": "other" } }],
  ["client to sign in with", remoteSpec("a"), remoteSpec("a", { oauth: { clientId: "me" } })],
  ["account, by the name that people sign in to", remoteSpec("a"), { ...remoteSpec("a"), name: "b" }],
])("servers have separate connections: %s", (_what, one, other) => {
  expect(idOf(one)).not.toBe(idOf(other));
});

test("relative folders start where the user is, and what is in a configuration cannot be read from its identity", () => {
  expect(resolveServer({ ...local, cwd: "sub" }, "/work")).toMatchObject({ cwd: resolve("/work/sub") });
  expect(idOf(local, "/work")).not.toBe(idOf(local, "/elsewhere"));
  expect(idOf(remote, "/work")).toBe(idOf(remote, "/elsewhere"));
  expect(idOf(remote)).toMatch(/^[0-9a-f]{64}$/);
});

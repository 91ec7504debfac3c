import { expect, onTestFinished, test, vi } from "vitest";
import { patience } from "../slowness.ts";
import { ForgetfulServer } from "./forgetful-server.ts";
import { neverAborted, remoteSpec } from "./supervisor-kit.ts";
import { realSupervisor } from "./tiny-servers.ts";

test("after a restart of a remote server the connection is replaced, and calls in flight reach it once each", async () => {
  const remote = new ForgetfulServer();
  const url = await remote.listen();
  onTestFinished(() => remote[Symbol.asyncDispose]());
  const supervisor = realSupervisor();
  onTestFinished(() => supervisor[Symbol.asyncDispose]());
  const lease = supervisor.acquire([remoteSpec("forgetful", { url })]);
  await lease.ready(neverAborted);
  const server = lease.servers[0]!;
  expect(server.lists?.tools).toHaveLength(1);
  expect(await server.callTool("count", {})).toMatchObject({ content: [{ text: "1" }] });
  remote.forgetSessions();
  await Promise.all(Array.from({ length: 8 }, () => server.callTool("count", {})));
  expect(remote.calls).toBe(9);
  expect(remote.sessionsMade).toBe(2);
  await vi.waitFor(() => expect(server.status).toMatchObject({ state: "ready", failures: 1, error: undefined }), {
    timeout: patience(15_000),
  });
});

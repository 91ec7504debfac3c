import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createTestHost } from "skillhost/testing";
import { afterEach, expect, test, vi } from "vitest";

const skill = fileURLToPath(new URL("../../skills/service-status/", import.meta.url));

afterEach(() => {
  vi.unstubAllEnvs();
});

/** The skill's own status service, on a port of its own; ended with the test. */
async function startService(): Promise<{ url: string } & AsyncDisposable> {
  const child = spawn(process.execPath, [`${skill}scripts/status-server.mjs`, "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const url = /http:\S+/.exec(line.toString())?.[0] ?? "";
  return {
    url,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}

test.each(["uptime", "load", "memory", "disk"])("asks the service about %s", async (service) => {
  await using running = await startService();
  vi.stubEnv("SKILLHOST_STATUS_URL", running.url);
  await using server = await createTestHost({ skillDirectories: [skill], watch: false });
  const result = await server.call("service_status", { service });
  expect(result.resultType).toBe("success");
  expect(JSON.parse(result.textResultForLlm)).toMatchObject({ service, state: expect.stringMatching(/^(ok|busy)$/) });
});

test("without a service the call fails, without naming its address", async () => {
  await using server = await createTestHost({ skillDirectories: [skill], watch: false });
  // Port 1 is reserved and nothing listens there.
  vi.stubEnv("SKILLHOST_STATUS_URL", "http://127.0.0.1:1");
  const result = await server.call("service_status", { service: "load" });
  expect(result.resultType).toBe("failure");
  expect(result.textResultForLlm).not.toContain("127.0.0.1");
});

test("a service that is not one of its four is refused before anything is sent", async () => {
  await using server = await createTestHost({ skillDirectories: [skill], watch: false });
  vi.stubEnv("SKILLHOST_STATUS_URL", "http://127.0.0.1:1");
  const result = await server.call("service_status", { service: "../admin" });
  expect(result.resultType).toBe("failure");
  expect(result.textResultForLlm).toMatch(/service.*uptime.*load.*memory.*disk/s);
});

test("the service itself answers only what it knows, and only GET", async () => {
  await using running = await startService();
  const statusOf = async (path: string, method = "GET"): Promise<number> => (await fetch(`${running.url}${path}`, { method })).status;
  expect(await statusOf("/status/load")).toBe(200);
  expect(await statusOf("/status/constructor")).toBe(404);
  expect(await statusOf("/")).toBe(404);
  expect(await statusOf("/status/load", "POST")).toBe(405);
});

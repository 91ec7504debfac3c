import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTestHost } from "skillhost/testing";
import { expect, onTestFinished, test } from "vitest";

const skill = fileURLToPath(new URL("../../skills/service-status/", import.meta.url));

/** The skill as it is, but for the address of the service. */
function skillFor(url: string): string {
  const root = mkdtempSync(join(tmpdir(), "skillhost-status-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const folder = join(root, "service-status");
  cpSync(skill, folder, { recursive: true });
  const file = join(folder, "tools/service_status.json");
  const text = readFileSync(file, "utf8");
  expect(text).toContain("http://127.0.0.1:8787/");
  writeFileSync(file, text.replace("http://127.0.0.1:8787", url));
  return folder;
}

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

test.each(["uptime", "load", "memory", "disk"])("the service-status skill asks the service about %s", async (service) => {
  await using running = await startService();
  await using server = await createTestHost({ skillDirectories: [skillFor(running.url)], watch: false });
  const result = await server.call("service_status", { service });
  expect(result.resultType).toBe("success");
  expect(JSON.parse(result.textResultForLlm)).toMatchObject({ service, state: expect.stringMatching(/^(ok|busy)$/) });
});

test("service_status fails without a running service and does not show its address", async () => {
  // Port 1 is reserved and nothing listens there.
  await using server = await createTestHost({ skillDirectories: [skillFor("http://127.0.0.1:1")], watch: false });
  const result = await server.call("service_status", { service: "load" });
  expect(result.resultType).toBe("failure");
  expect(result.textResultForLlm).not.toContain("127.0.0.1");
});

test("service_status rejects an unknown service before sending a request", async () => {
  await using server = await createTestHost({ skillDirectories: [skillFor("http://127.0.0.1:1")], watch: false });
  const result = await server.call("service_status", { service: "../admin" });
  expect(result.resultType).toBe("failure");
  expect(result.textResultForLlm).toMatch(/service.*uptime.*load.*memory.*disk/s);
});

test("the status service answers only GET requests for known services", async () => {
  await using running = await startService();
  const statusOf = async (path: string, method = "GET"): Promise<number> => (await fetch(`${running.url}${path}`, { method })).status;
  expect(await statusOf("/status/load")).toBe(200);
  expect(await statusOf("/status/constructor")).toBe(404);
  expect(await statusOf("/")).toBe(404);
  expect(await statusOf("/status/load", "POST")).toBe(405);
});

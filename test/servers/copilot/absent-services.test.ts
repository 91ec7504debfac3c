import { afterEach, describe, expect, test } from "vitest";
import { absentServices } from "../../../src/servers/copilot/methods/absent-services.ts";
import { patience } from "../../slowness.ts";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function begin(): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start();
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m" }) };
}

describe("a service that skillhost does not have", () => {
  test(
    "answers questions as one in which nothing exists",
    async () => {
      const { client, sessionId } = await begin();
      const parameters = {
        sessionId,
        paths: ["/a", "/b"],
        number: 1,
        id: 1,
        handle: "none",
        requestId: "none",
        text: "/",
        offset: 1,
        name: "chronicleEnabled",
        serverName: "none",
        mode: "off",
        config: { remote: true, steerable: true, explicit: true, silent: false },
      };
      // The contract compiles a schema for each of them.
      const answers: Record<string, Json> = {};
      for (const method of Object.keys(absentServices)) answers[method] = await client.request(method, parameters);
      expect(answers).toMatchObject({
        "account.getAllUsers": [],
        "commands.list": { commands: [] },
        "session.completions.request": { items: [] },
        "session.contentExclusion.checkPaths": {
          available: false,
          checks: [
            { path: "/a", excluded: false },
            { path: "/b", excluded: false },
          ],
        },
        "session.gitHubAuth.getCurrentAuthInfo": null,
        "session.gitHubAuth.getStatus": { isAuthenticated: true, authType: "api-key" },
        "session.gitHubAuth.refreshCopilotUser": null,
        "session.gitHubAuth.setCredentials": { success: false },
        "session.limitPrediction.predict": { kind: "unavailable" },
        "session.mcp.oauth.respond": { success: false },
        "session.queue.consumeSystemNotifications": { removed: false },
        "session.remote.enable": { remoteSteerable: false },
        "sessions.startRemoteControl": { status: { state: "error", error: expect.stringContaining("only on this machine") } },
        "session.mcp.headers.handlePendingHeadersRefreshRequest": { success: false },
        "session.schedule.list": { entries: [] },
        "session.ui.handlePendingAutoModeSwitch": { success: false },
        "session.visibility.get": { synced: false },
        "sessions.getRemoteControlStatus": { status: { state: "off" } },
        "sessions.stopRemoteControl": { status: { state: "off" }, stopped: false },
        "session.autopilotObjective.getState": { state: null },
        "session.canvas.provider.unregister": null,
        "session.mcp.unregisterExternalClient": null,
        "session.sandbox.disableForSession": { success: false, enabled: false },
        "session.sandbox.getEnforcementStatus": { required: false, blocked: false },
        "sessions.configureSessionExtensions": null,
      });
    },
    patience(120_000),
  );

  test.each([
    ["session.remote.enable", { mode: "on" }],
    ["session.remote.enable", {}],
    ["session.remote.notifySteerableChanged", { remoteSteerable: true }],
  ])("refuses %s with %j, which would have to reach other machines", async (method, params) => {
    const { client, sessionId } = await begin();
    expect((await client.refusal(method, { sessionId, ...params })).message).toContain("sessions run only on this machine");
  });

  test.each(["add", "addAt", "addCron", "addSelfPaced", "rearmSelfPaced"])(
    "refuses schedule.%s in the result, with the way to do it",
    async (name) => {
      const { client, sessionId } = await begin();
      const { entry, error } = await client.request(`session.schedule.${name}`, {
        sessionId,
        prompt: "Later",
        interval: "5m",
        id: 1,
        at: 1,
      });
      expect(entry).toBeUndefined();
      expect(error).toContain("session.send");
      expect(await client.request("session.schedule.list", { sessionId })).toEqual({ entries: [] });
    },
  );

  test("refuses a new agent process in the result", async () => {
    const { client } = await begin();
    expect(await client.request("agentRegistry.spawn", { cwd: "/" })).toMatchObject({
      kind: "spawn-error",
      message: expect.stringContaining("--headless"),
    });
  });

  test("refuses settings that it would ignore, and takes the defaults", async () => {
    const { client, sessionId } = await begin();
    const method = "session.tools.updateSubagentSettings";
    for (const subagents of [null, {}, { maxDepth: null }]) expect(await client.request(method, { sessionId, subagents })).toEqual({});
    const { code, message } = await client.refusal(method, { sessionId, subagents: { disabledSubagents: ["explore"], maxDepth: 1 } });
    expect([code, message]).toEqual([-32601, expect.stringContaining("disabledSubagents, maxDepth cannot change")]);
  });

  test("gives a handler a handle, which another client cannot release", async () => {
    const { client, sessionId } = await begin();
    const other = await served.connect();
    await other.request("session.resume", { sessionId });
    const { handle } = await client.request("session.ui.registerDirectAutoModeSwitchHandler", { sessionId });
    const release = (one: TestClient): Promise<Json> =>
      one.request("session.ui.unregisterDirectAutoModeSwitchHandler", { sessionId, handle });
    expect(await release(other)).toEqual({ unregistered: false });
    expect(await release(client)).toEqual({ unregistered: true });
  });
});

test("a token of the environment is reported without its value", async () => {
  served = await Served.start({ server: { gitHubToken: "a-token" } });
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  const status = await client.request("session.gitHubAuth.getStatus", { sessionId });
  const info = await client.request("session.gitHubAuth.getCurrentAuthInfo", { sessionId });
  expect([status, info]).toMatchObject([{ isAuthenticated: true, authType: "env" }, { type: "env" }]);
  expect(JSON.stringify([status, info])).not.toContain("a-token");
});

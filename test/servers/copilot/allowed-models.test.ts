import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { jsonAnswer } from "../../doubles/scripted-model.ts";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

interface Begun {
  readonly client: TestClient;
  readonly ask: (method: string, params?: object) => Promise<Json>;
  readonly refusal: (method: string, params?: object) => Promise<string>;
}

async function begin(options: object = { model: "m" }): Promise<Begun> {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create(options);
  return {
    client,
    ask: (method, params = {}) => client.request(method, { sessionId, ...params }),
    refusal: async (method, params = {}) => (await client.refusal(method, { sessionId, ...params })).message,
  };
}

describe("the models that a client allows", () => {
  test("are the only ones that a session can be switched to, until all are allowed again", async () => {
    const { ask, refusal } = await begin();
    const allowedModels = ["m", "n"];
    expect(await ask("session.model.setAllowedModels", { allowedModels: ["m", " n ", "m"] })).toEqual({
      allowedModels,
      effectiveAllowedModels: allowedModels,
      fallbackModel: "m",
      modelId: "m",
    });
    const changes: readonly (readonly [string, object])[] = [
      ["session.model.switchTo", { modelId: "o" }],
      ["session.options.update", { model: "o" }],
      ["session.resume", { model: "o" }],
      ["session.model.applyStartupOverlay", { cliModel: "o" }],
      ["session.tasks.startAgent", { agentType: "explore", name: "a", prompt: "Look.", model: "o" }],
    ];
    for (const [method, params] of changes)
      expect([method, await refusal(method, params)]).toEqual([method, expect.stringContaining("Allowed: m, n.")]);
    expect(await ask("session.model.getCurrent")).toEqual({ modelId: "m" });
    expect(await ask("session.model.switchTo", { modelId: "n" })).toMatchObject({ modelId: "n" });
    expect(await ask("session.model.setAllowedModels", { allowedModels: null })).toEqual({ effectiveAllowedModels: ["*"], modelId: "n" });
    expect(await ask("session.model.switchTo", { modelId: "o" })).toMatchObject({ modelId: "o" });
  });

  test("take the place of another model at once, and are the ones that are listed", async () => {
    const { ask } = await begin();
    served.model.answer(jsonAnswer({ data: [{ id: "m" }, { id: "n" }, { id: "o" }] }));
    expect(await ask("session.model.setAllowedModels", { allowedModels: ["o", "n"] })).toMatchObject({ modelId: "o" });
    expect((await ask("session.model.list")).list.map(({ id }: Json) => id)).toEqual(["n", "o"]);
  });

  test.each([[undefined], [[]], [["a", ""]], ["m"], [[1]]])("are not changed by %j", async (allowedModels) => {
    const { ask, refusal } = await begin();
    expect(await refusal("session.model.setAllowedModels", { allowedModels })).toContain("allowedModels must");
    expect(await ask("session.model.switchTo", { modelId: "o" })).toMatchObject({ modelId: "o" });
  });
});

test("no model is chosen by a preference: only the default can be returned to", async () => {
  const { ask, refusal } = await begin();
  expect(await ask("session.model.switchAutoTier", { autoTier: null })).toEqual({ status: "unchanged" });
  expect(await refusal("session.model.switchAutoTier", { autoTier: "fast" })).toContain("session.model.switchTo");
});

describe("the settings of the user", () => {
  test("name the model of sessions that name none, also for another process", async () => {
    const { client, ask } = await begin({});
    expect(await ask("user.settings.get")).toEqual({ settings: { model: { value: null, default: null, isDefault: true } } });
    expect(await ask("user.settings.set", { settings: { model: "mine" } })).toEqual({ shadowedKeys: [] });
    expect(await ask("user.settings.get")).toEqual({ settings: { model: { value: "mine", default: null, isDefault: false } } });
    served.says("Hello.");
    await client.say(await client.create({}), "Hi.");
    expect(served.asked.model).toBe("mine");
    await ask("user.settings.set", { settings: { model: null } });
    expect(await ask("user.settings.get")).toMatchObject({ settings: { model: { isDefault: true } } });
  });

  test("that would have no effect are refused by name, and a damaged file is", async () => {
    const { ask, refusal } = await begin();
    expect(await refusal("user.settings.set", { settings: { model: "m", theme: "dark" } })).toContain("theme would have no effect");
    expect(await refusal("user.settings.set", { settings: { model: 7 } })).toContain("settings.model must");
    expect(await ask("user.settings.get")).toMatchObject({ settings: { model: { isDefault: true } } });
    for (const damaged of ["{", "[]", '{"model":7}']) {
      writeFileSync(join(served.folder, ".home/user-settings.json"), damaged);
      expect(await refusal("user.settings.get")).toMatch(/user-settings\.json cannot be read: .+ Fix it/);
    }
  });
});

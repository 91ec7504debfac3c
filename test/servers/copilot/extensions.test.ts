import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { findSdk } from "../../../src/servers/copilot/extensions/extension-process.ts";
import { discoverExtensions } from "../../../src/servers/copilot/extensions/session-extensions.ts";
import type { RecordedEvent } from "../../../src/session/history/events.ts";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

const sdk = fileURLToPath(new URL("../../fixtures/extension-sdk", import.meta.url));
const head = `import { joinSession } from "@github/copilot-sdk/extension";\n`;

/** An extension with one tool, which says something. */
function extensionSource(tool: string, says: string, more = ""): string {
  const definition = `{ name: "${tool}", description: "Returns a text.", skipPermission: true, parameters: { type: "object" }, handler: () => ${says} }`;
  return `${head}await joinSession({ tools: [${definition}], ${more} });\n`;
}

function folder(files: Readonly<Record<string, string>> = {}): string {
  const made = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-extensions-")));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(made, path)), { recursive: true });
    writeFileSync(join(made, path), text);
  }
  return made;
}

const statuses = (extensions: Json): Json => Object.fromEntries(extensions.map(({ id, status }: Json) => [id, status]));

interface Opened {
  readonly served: Served;
  readonly client: TestClient;
  readonly sessionId: string;
  list(): Promise<Json>;
  /** Settles when the extensions have these statuses. */
  until(wanted: Readonly<Record<string, string>>): Promise<unknown>;
  call(tool: string): Promise<string>;
}

async function open(
  extensions: Readonly<Record<string, string>>,
  options: {
    readonly user?: Readonly<Record<string, string>>;
    readonly create?: object;
    readonly environment?: Readonly<Record<string, string>>;
  } = {},
): Promise<Opened> {
  const files = Object.fromEntries(Object.entries(extensions).map(([name, text]) => [`.github/extensions/${name}/extension.mjs`, text]));
  const user = Object.fromEntries(Object.entries(options.user ?? {}).map(([name, text]) => [`${name}/extension.mjs`, text]));
  const served = await Served.start({ files, server: { extensionsDirectory: folder(user) } });
  Object.assign(served.server.options.environment, options.environment);
  onTestFinished(() => served[Symbol.asyncDispose]());
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", requestExtensions: true, extensionSdkPath: sdk, ...options.create });
  const list = async (): Promise<Json> => (await client.request("session.extensions.list", { sessionId })).extensions;
  const isWanted =
    (wanted: object) =>
    ({ type, data }: RecordedEvent): boolean =>
      type === "session.extensions_loaded" && JSON.stringify(statuses(data["extensions"])) === JSON.stringify(wanted);
  return {
    served,
    client,
    sessionId,
    list,
    until: (wanted) =>
      client.eventually(() => client.events.find((received) => received.sessionId === sessionId && isWanted(wanted)(received.event))),
    async call(tool) {
      served.says(calling(tool, { city: "Oslo" }), "Done.");
      await client.say(sessionId, "Go.");
      return served.asked.messages.findLast(({ role }: Json) => role === "tool")?.content;
    },
  };
}

describe("extensions of a session", () => {
  test("are started beside it, attach over their own stdio, and answer the model's calls", async () => {
    const { client, list, until, call, sessionId } = await open({
      one: extensionSource("one_tool", `"from " + process.env.SESSION_ID.length`),
    });
    await until({ "project:one": "running" });
    expect(await list()).toEqual([{ id: "project:one", name: "one", source: "project", status: "running", pid: expect.any(Number) }]);
    expect(await call("one_tool")).toBe(`from ${sessionId.length}`);
    expect(client.types()).not.toContain("session.resume");
  });

  test("are off unless a client wants them", async () => {
    const { client, sessionId, list } = await open({ one: extensionSource("one_tool", `"1"`) }, { create: { requestExtensions: false } });
    expect(await list()).toEqual([]);
    await client.request("session.extensions.reload", { sessionId });
    expect((await client.refusal("session.extensions.enable", { sessionId, id: "project:one" })).message).toContain(
      "requestExtensions: true",
    );
    expect(client.types()).not.toContain("session.extensions_loaded");
  });

  test("extensions are announced as a capability, and get only the environment variables that a program needs", async () => {
    process.env["SECRET_OF_THE_HOST"] = "s3cret";
    onTestFinished(() => void delete process.env["SECRET_OF_THE_HOST"]);
    const names = `JSON.stringify([process.env.SECRET_OF_THE_HOST ?? "none", Number(process.env.COPILOT_EXTENSION_PARENT_PID) === process.ppid, process.cwd()])`;
    const { served, client, until, call } = await open({ one: extensionSource("env_tool", names) });
    const { capabilities } = await client.request("session.create", {
      requestExtensions: true,
      extensionSdkPath: sdk,
      sessionId: "another",
    });
    expect(capabilities).toMatchObject({ extensions: true });
    await until({ "project:one": "running" });
    expect(JSON.parse(await call("env_tool"))).toEqual(["none", true, realpathSync.native(served.folder)]);
  });

  test("the tools of a crashed extension are removed: its pending call fails, and the session continues", async () => {
    const { client, until, call, list, sessionId, served } = await open({
      bad: extensionSource("crash_tool", `{ console.error("It broke."); process.exit(3); }`),
      good: extensionSource("good_tool", `"still here"`),
    });
    await until({ "project:bad": "running", "project:good": "running" });
    await call("crash_tool");
    await until({ "project:bad": "failed", "project:good": "running" });
    const warning = await client.event("session.warning");
    expect(warning.data["message"]).toMatch(/Extension "project:bad" failed: it exited with code 3.*It broke\./s);
    expect(await call("good_tool")).toBe("still here");
    expect(served.asked.tools.map(({ function: { name } }: Json) => name)).not.toContain("crash_tool");
    expect((await list()).map(({ pid }: Json) => typeof pid)).toEqual(["undefined", "number"]);
    await client.request("session.extensions.reload", { sessionId });
    expect(statuses(await list())).toEqual({ "project:bad": "running", "project:good": "running" });
  });

  test("a reload finds and starts edited and added extensions, and stops removed ones", async () => {
    const { served, client, until, call, list, sessionId } = await open({
      one: extensionSource("one_tool", `"before"`),
      two: extensionSource("two_tool", `"two"`),
    });
    await until({ "project:one": "running", "project:two": "running" });
    const [{ pid }] = await list();
    served.write(".github/extensions/one/extension.mjs", extensionSource("one_tool", `"after"`));
    served.write(".github/extensions/three/extension.mjs", extensionSource("three_tool", `"three"`));
    rmSync(join(served.folder, ".github/extensions/two"), { recursive: true });
    await client.request("session.extensions.reload", { sessionId });
    expect(statuses(await list())).toEqual({ "project:one": "running", "project:three": "running" });
    expect([await call("one_tool"), await call("three_tool")]).toEqual(["after", "three"]);
    expect(served.asked.tools.map(({ function: { name } }: Json) => name)).not.toContain("two_tool");
    expect(() => process.kill(pid, 0)).toThrow();
  });

  test("can be switched off and on again for a session", async () => {
    const { client, until, call, list, sessionId } = await open({ one: extensionSource("one_tool", `"one"`) });
    await until({ "project:one": "running" });
    await client.request("session.extensions.disable", { sessionId, id: "project:one" });
    expect(statuses(await list())).toEqual({ "project:one": "disabled" });
    expect(await call("one_tool")).toContain("one_tool");
    await client.request("session.extensions.reload", { sessionId });
    expect(statuses(await list())).toEqual({ "project:one": "disabled" });
    await client.request("session.extensions.enable", { sessionId, id: "project:one" });
    expect(await call("one_tool")).toBe("one");
    expect((await client.refusal("session.extensions.disable", { sessionId, id: "project:x" })).message).toContain(
      "Its extensions are project:one.",
    );
  });

  test("of the user can be switched off for later sessions", async () => {
    const user = { own: extensionSource("own_tool", `"own"`) };
    const { served, client, until, list } = await open({}, { user });
    await until({ "user:own": "running" });
    const created = { model: "m", requestExtensions: true, extensionSdkPath: sdk };
    const statusOfNext = async (): Promise<string> => {
      const sessionId = await client.create(created);
      const isLoaded = ({ sessionId: id, event }: TestClient["events"][number]): boolean =>
        id === sessionId && event.type === "session.extensions_loaded" && statuses(event.data["extensions"])["user:own"] !== "starting";
      const { event } = await client.eventually(() => client.events.find(isLoaded));
      return statuses(event.data["extensions"])["user:own"];
    };
    const enabled = async (): Promise<Json> => (await client.request("extensions.discover")).extensions.map((one: Json) => one.enabled);
    expect(await client.request("extensions.disable", { ids: ["user:own"] })).toBe(null);
    expect([statuses(await list()), await enabled(), await statusOfNext()]).toEqual([{ "user:own": "running" }, [false], "disabled"]);
    await client.request("extensions.enable", { ids: ["user:own"] });
    expect([await enabled(), await statusOfNext()]).toEqual([[true], "running"]);
    const refusal = async (ids: unknown): Promise<string> => (await client.refusal("extensions.disable", { ids })).message;
    expect(await refusal(["user:own", "project:x"])).toContain("The user's extensions are user:own.");
    expect(await refusal("user:own")).toContain("ids must be an array of strings");
    expect(await enabled()).toEqual([true]);
    writeFileSync(join(served.server.options.extensionsDirectory!, "disabled.json"), "{");
    expect((await client.refusal("extensions.discover")).message).toContain("disabled.json cannot be read");
    const careful = await client.create(created);
    const warning = await client.event("session.warning", ({ data }) => String(data["message"]).includes("disabled.json"));
    expect(warning.data["message"]).toContain("The user's extensions were not started.");
    expect((await client.request("session.extensions.list", { sessionId: careful })).extensions).toEqual([]);
  });

  test("offer attachments for the next message, which only they can do", async () => {
    const attachments = `[
      { type: "file", path: "a.txt", displayName: "A", data: "x" },
      { type: "extension_context", title: "Issue", payload: { number: 7 } },
    ]`;
    const push = (list: string): string =>
      `(await session.request("session.extensions.sendAttachmentsToMessage", { attachments: ${list} })) + ""`;
    const source = (list: string): string =>
      extensionSource("push", "push()").replace("await joinSession", "const session = await joinSession") +
      `async function push() { try { return ${push(list)}; } catch (error) { return error.message; } }\n`;
    const { served, client, until, call, sessionId } = await open({
      good: source(attachments),
      bad: source('[{ type: "x" }]').replace('"push"', '"spoil"'),
    });
    await until({ "project:bad": "running", "project:good": "running" });
    served.write("a.txt", "text");
    expect(await call("push")).toBe("null");
    expect((await client.event("session.extensions.attachments_pushed")).data["attachments"]).toEqual([
      { type: "file", path: "a.txt", displayName: "A" },
      { type: "extension_context", extensionId: "project:good", title: "Issue", payload: { number: 7 }, capturedAt: expect.any(String) },
    ]);
    expect(await call("spoil")).toContain("attachments[0] must be");
    const refusal = await client.refusal("session.extensions.sendAttachmentsToMessage", { sessionId, attachments: [] });
    expect(refusal.message).toContain("only extensions of the session");
    expect(client.count("session.extensions.attachments_pushed")).toBe(1);
  });

  test("of the project shadow those of the user; a tool of a client wins over one of an extension", async () => {
    const { client, until, call, list, sessionId } = await open(
      { same: extensionSource("same_tool", `"of the project"`), rival: extensionSource(weather.name, `"of the extension"`) },
      { user: { same: extensionSource("same_tool", `"of the user"`), own: extensionSource("own_tool", `"of the user"`) } },
    );
    await until({ "project:rival": "running", "project:same": "running", "user:own": "running" });
    expect((await list()).map(({ id }: Json) => id)).toEqual(["project:rival", "project:same", "user:own"]);
    expect([await call("same_tool"), await call("own_tool"), await call(weather.name)]).toEqual([
      "of the project",
      "of the user",
      "of the extension",
    ]);
    client.serve({ [weather.name]: () => "of the client" });
    await client.request("session.tools.set", { sessionId, tools: [{ ...weather, skipPermission: true }] });
    expect(await call(weather.name)).toBe("of the client");
  });

  test("of two extensions with the same tool name, one runs and the other fails with the reason", async () => {
    const { client, list, call } = await open({
      a: extensionSource("taken", `"a"`),
      b: extensionSource("taken", `"b"`).replace("Returns a text.", "Returns another text."),
    });
    await expect.poll(async () => (await list()).map(({ status }: Json) => status).sort()).toEqual(["failed", "running"]);
    const [{ id: winner }] = (await list()).filter(({ status }: Json) => status === "running");
    expect((await client.event("session.warning")).data["message"]).toContain("taken");
    expect(await call("taken")).toBe(winner === "project:a" ? "a" : "b");
  });

  test("that never join fail and leave the others alone", async () => {
    const first = extensionSource("taken", `"first"`);
    const { client, until, call } = await open({ a: first, b: `setTimeout(() => {}, 60_000);\nprocess.stdout.end();\n` });
    await until({ "project:a": "running", "project:b": "failed" });
    expect((await client.event("session.warning")).data["message"]).toContain('Extension "project:b" failed');
    expect(await call("taken")).toBe("first");
  });

  test("hooks of extensions run, and their denials apply", async () => {
    const hooks = `hooks: { preToolUse: ({ toolName }) => (toolName === "${weather.name}" ? { permissionDecision: "deny", permissionDecisionReason: "Not today." } : undefined) }`;
    const { served, client, until, call, sessionId } = await open({ guard: extensionSource("guard_tool", `"x"`, hooks) });
    await until({ "project:guard": "running" });
    client.serve({ [weather.name]: () => "sunny" });
    await client.request("session.tools.set", { sessionId, tools: [{ ...weather, skipPermission: true }] });
    expect(await call(weather.name)).toContain("Not today.");
    await client.request("session.extensions.disable", { sessionId, id: "project:guard" });
    await expect.poll(() => served.server.sessions.get(sessionId)?.hookClients.length).toBe(0);
    expect(await call(weather.name)).toBe("sunny");
  });

  test("end with the session, and do not keep it", async () => {
    const { served, client, until, list, sessionId } = await open({ one: extensionSource("one_tool", `"one"`) });
    await until({ "project:one": "running" });
    const [{ pid }] = await list();
    await client.request("session.destroy", { sessionId });
    expect(served.server.sessions.has(sessionId)).toBe(false);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("join no other session, and are refused variables of the host that they ask for", async () => {
    const stray = extensionSource("x_tool", `"x"`).replace("await joinSession", `process.env.SESSION_ID = "other";\nawait joinSession`);
    const asking = extensionSource("y_tool", `"y"`, `requestedEnvironmentVariables: ["A_TOKEN", "PATH", "UNSET_NAME"]`);
    const modest = extensionSource("z_tool", `"z"`, `requestedEnvironmentVariables: ["PATH", "UNSET_NAME"]`);
    const { client, until } = await open({ asking, modest, stray }, { environment: { A_TOKEN: "t", PATH: "/bin" } });
    await until({ "project:asking": "failed", "project:modest": "running", "project:stray": "failed" });
    const said = client.events
      .filter(({ event: { type } }) => type === "session.warning")
      .map(({ event }) => String(event.data["message"]));
    expect(said.join()).toMatch(/cannot join another/);
    expect(said.join()).toMatch(/requests A_TOKEN, but/);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("discovery", () => {
  test("looks at the top of the checkout, one level deep, for extension.mjs, also through links", () => {
    const project = folder({
      ".git/HEAD": "",
      ".github/extensions/a/extension.mjs": "",
      ".github/extensions/b/extension.js": "",
      ".github/extensions/c/deep/extension.mjs": "",
      ".github/extensions/extension.mjs": "",
      "src/deep/file.txt": "",
    });
    const elsewhere = folder({ "extension.mjs": "" });
    symlinkSync(elsewhere, join(project, ".github/extensions/linked"));
    mkdirSync(join(project, ".github/extensions/d/extension.mjs"), { recursive: true });
    const userDirectory = folder({ "a/extension.mjs": "", "z/extension.mjs": "" });
    const found = discoverExtensions({ workingDirectory: join(project, "src/deep"), userDirectory });
    expect(found.map(({ id }) => id)).toEqual(["project:a", "project:linked", "user:z"]);
    expect(discoverExtensions({ workingDirectory: folder(), userDirectory: join(project, "gone") })).toEqual([]);
  });

  test("of the SDK takes the first that is one: named, installed for the extension, or for the working directory", () => {
    const files = { "index.js": "", "extension.js": "" };
    const installed = Object.fromEntries(Object.keys(files).map((name) => [`node_modules/@github/copilot-sdk/dist/${name}`, ""]));
    const [named, project, place] = [folder(files), folder(installed), folder(installed)];
    const extension = join(project, ".github/extensions/a/extension.mjs");
    expect(findSdk([undefined, join(named, "gone"), named], extension, place)).toBe(named);
    expect(findSdk([], extension, place)).toBe(join(project, "node_modules/@github/copilot-sdk/dist"));
    expect(findSdk([], join(folder(), "extension.mjs"), place)).toBe(join(place, "node_modules/@github/copilot-sdk/dist"));
    expect(findSdk([join(named, "gone")], join(folder(), "extension.mjs"), folder())).toBeUndefined();
  });
});

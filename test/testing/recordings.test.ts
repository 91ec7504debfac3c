import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createTestHost, type RecordTrafficOptions, recordTraffic, type TestHostOptions, tempSkill } from "skillhost/testing";
import { expect, onTestFinished, test, vi } from "vitest";

interface Service {
  readonly url: string;
  /** `GET /path` of each request. */
  readonly requests: string[];
  close(): Promise<void>;
}

/** A service that answers each request with JSON: its path, how many came before, and a credential. */
async function startService(): Promise<Service> {
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const answer = JSON.stringify({ path: request.url, number: requests.length, access_token: "at-5up3r-s3cret" });
    const send = (): unknown =>
      response.setHeader("content-type", "application/json").setHeader("set-cookie", "id=c00kie-value").end(answer);
    // The first of two requests at the same time is answered last.
    if (request.url === "/slow") setTimeout(send, 50);
    else send();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): Promise<void> => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  onTestFinished(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close };
}

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "skillhost-recordings-")));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const fetching = (url: string): string => `export default {
  name: "fetch_rate",
  description: "Fetches.",
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  async handler({ path }) {
    const headers = { authorization: "Bearer " + process.env.RATES_API_KEY, "x-other": "header-value" };
    const response = await fetch("${url}" + path, { headers });
    return await response.json();
  },
};
`;

/** Calls a tool of a skill in a recording. */
async function callIn(
  file: string,
  options: RecordTrafficOptions,
  skill: { readonly root: string },
  ...paths: readonly string[]
): Promise<string[]> {
  return recordTraffic(
    file,
    async () => {
      await using host = await createTestHost({ skillDirectories: [skill.root], watch: false });
      const results = await Promise.all(paths.map((path) => host.call("fetch_rate", { path })));
      return results.map(({ text }) => text);
    },
    options,
  );
}

test("what a tool fetches is recorded without credentials, and replayed when the service is gone", async () => {
  vi.stubEnv("RATES_API_KEY", "key-of-the-environment-1");
  onTestFinished(() => void vi.unstubAllEnvs());
  const service = await startService();
  using skill = tempSkill({ "skill.json": '{ "name": "rates" }', "tools/fetch.mjs": fetching(service.url) });
  const file = join(folder(), "rates.recording.json");
  const live = await callIn(file, { mode: "record" }, skill, "/eur?api_key=in-the-query&key=key-of-the-environment-1");
  expect(JSON.parse(live[0]!)).toMatchObject({ number: 1, access_token: "at-5up3r-s3cret" });
  const text = readFileSync(file, "utf8");
  for (const secret of ["key-of-the-environment-1", "in-the-query", "at-5up3r-s3cret", "c00kie-value", "header-value", "Bearer"])
    expect(text).not.toContain(secret);
  const path = "/eur?api_key=[redacted]&key=[redacted]";
  expect(JSON.parse(text)).toEqual({
    recording: "skillhost",
    version: 1,
    http: [
      {
        request: { method: "GET", url: `${service.url}${path}` },
        response: {
          status: 200,
          headers: { "content-type": "application/json" },
          body: { path, number: 1, access_token: "[redacted]" },
        },
      },
    ],
  });

  await service.close();
  // The recording exists, so it is used without a word; another key makes the same request.
  vi.stubEnv("RATES_API_KEY", "another-key-of-ci-2");
  const again = await callIn(file, {}, skill, "/eur?api_key=other&key=another-key-of-ci-2");
  expect(JSON.parse(again[0]!)).toEqual({ path, number: 1, access_token: "[redacted]" });
  expect(service.requests).toHaveLength(1);
});

test("a request that is not recorded is refused, and fails the test although its tool handled the failure", async () => {
  const service = await startService();
  const handled = fetching(service.url)
    .replace("async handler({ path }) {", "async handler({ path }) { try {")
    .replace("return await response.json();", 'return await response.json(); } catch { return "handled"; }');
  using skill = tempSkill({ "skill.json": '{ "name": "rates" }', "tools/fetch.mjs": handled });
  const file = join(folder(), "rates.recording.json");
  await callIn(file, { mode: "record" }, skill, "/eur");
  const before = readFileSync(file, "utf8");
  const failing = expect(callIn(file, { mode: "replay" }, skill, "/usd")).rejects;
  await failing.toMatchObject({
    code: "RECORDING_MISMATCH",
    message: `${file} has no answer to this HTTP request:
  GET ${service.url}/usd
Recorded: 1 HTTP request:
  GET ${service.url}/eur
If the test is right, record again: skillhost test --record (or SKILLHOST_RECORDINGS=record with another test runner).`,
  });
  await expect(callIn(file, {}, skill, "/eur", "/eur")).rejects.toMatchObject({
    message: expect.stringContaining("It was recorded once, and has been made once more."),
  });
  expect(service.requests).toEqual(["GET /eur"]);
  expect(readFileSync(file, "utf8")).toBe(before);
});

test("equal traffic gives an equal file, whichever answer comes first, and equal requests keep their order", async () => {
  const service = await startService();
  using skill = tempSkill({ "skill.json": '{ "name": "rates" }', "tools/fetch.mjs": fetching(service.url) });
  const place = folder();
  const urls = (file: string): string[] =>
    JSON.parse(readFileSync(file, "utf8")).http.map(({ request }: { request: { url: string } }) => request.url.slice(service.url.length));
  await callIn(join(place, "a.json"), { mode: "record" }, skill, "/slow", "/b");
  expect(urls(join(place, "a.json"))).toEqual(["/b", "/slow"]);
  const numbers = async (): Promise<string> => {
    const all: string[] = [];
    for (let count = 0; count < 3; count++) all.push(await (await fetch(`${service.url}/same`)).text());
    return all.join("\n");
  };
  const live = await recordTraffic(join(place, "b.json"), numbers, { mode: "record" });
  await service.close();
  const replayed = await recordTraffic(join(place, "b.json"), numbers);
  expect(replayed.match(/"number":\d/g)).toEqual(live.match(/"number":\d/g));
  expect(replayed).toContain('"number":4');
});

/** A placeholder of a JSON tool. */
const dollar = (name: string): string => `$${`{${name}}`}`;

test("an HTTP tool of a JSON file is recorded and replayed, with its body and an answer that is not text", async () => {
  const server = createServer((_request, response) => response.setHeader("content-type", "image/png").end(Buffer.from([0xff, 0, 1])));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const definition = {
    name: "draw",
    description: "Draws.",
    parameters: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
    handler: { http: { method: "POST", url: `${url}/draw`, body: { what: dollar("what") } } },
  };
  using skill = tempSkill({ "skill.json": '{ "name": "art" }', "tools/draw.json": JSON.stringify(definition) });
  const file = join(folder(), "art.json");
  const draw = (): Promise<unknown> =>
    recordTraffic(
      file,
      async () => {
        await using host = await createTestHost({ skillDirectories: [skill.root], watch: false, workingDirectory: skill.root });
        return { ...(await host.call("draw", { what: "a cat" })) };
      },
      { mode: existsSync(file) ? "replay" : "record" },
    );
  const live = await draw();
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  expect(await draw()).toEqual(live);
  expect(live).toMatchObject({ resultType: "success" });
  expect(JSON.parse(readFileSync(file, "utf8")).http[0]).toMatchObject({
    request: { method: "POST", url: `${url}/draw`, body: { what: "a cat" } },
    response: { body: { base64: "/wAB" } },
  });
});

const echoServer = fileURLToPath(new URL("../doubles/mcp-servers/v1-server.mjs", import.meta.url));

test("requests to an MCP server are recorded, and replayed without starting it", async () => {
  const file = join(folder(), "echo.json");
  const echo = (server: object, text: string, mode?: "record"): Promise<string> =>
    recordTraffic(
      pathToFileURL(file),
      async () => {
        const options: TestHostOptions = { skillDirectories: [], mcpServers: { echo: server }, mcp: { pins: "off" } };
        await using host = await createTestHost(options);
        await host.session.ready();
        return (await host.call("echo/echo", { text })).text;
      },
      { ...(mode && { mode }) },
    );
  expect(await echo({ command: process.execPath, args: [echoServer] }, "Hi.", "record")).toBe("Hi.");
  const { mcp } = JSON.parse(readFileSync(file, "utf8"));
  expect(mcp).toContainEqual({
    request: { server: "echo", method: "tools/call", params: { name: "echo", arguments: { text: "Hi." } } },
    response: { result: { content: [{ type: "text", text: "Hi." }] } },
  });
  const gone = { command: join(folder(), "no-such-program"), args: [] };
  expect(await echo(gone, "Hi.")).toBe("Hi.");
  await expect(echo(gone, "Ho.")).rejects.toMatchObject({
    code: "RECORDING_MISMATCH",
    message: expect.stringContaining('echo tools/call {"arguments":{"text":"Ho."},"name":"echo"}'),
  });
});

test("the results of named tools are recorded and replayed, and those of others are not", async () => {
  using skill = tempSkill({
    "skill.json": '{ "name": "dice" }',
    "tools/dice.mjs": `let count = 0;
export default [
  { name: "roll", description: "Rolls.", parameters: { type: "object", properties: { fails: { type: "boolean" } } }, handler({ fails }) { if (fails) throw new Error("The die broke."); return { rolled: ++count, password: "hunter2-hunter2" }; } },
  { name: "count", description: "Counts.", handler: () => String(count) },
];`,
  });
  const file = join(folder(), "dice.json");
  const play = (mode: "record" | "replay"): Promise<readonly string[]> =>
    recordTraffic(
      file,
      async () => {
        await using host = await createTestHost({ skillDirectories: [skill.root], watch: false });
        const results = [
          await host.call("roll"),
          await host.call("roll"),
          await host.call("roll", { fails: true }),
          await host.call("count"),
        ];
        return results.map(({ text }) => text);
      },
      { mode, tools: ["roll"] },
    );
  const live = await play("record");
  expect(live.slice(0, 2)).toEqual(['{"rolled":1,"password":"hunter2-hunter2"}', '{"rolled":2,"password":"hunter2-hunter2"}']);
  expect(live[3]).toBe("2");
  expect(readFileSync(file, "utf8")).not.toContain("hunter2");
  const replayed = await play("replay");
  expect(replayed).toEqual([...live.slice(0, 2).map((text) => text.replace("hunter2-hunter2", "[redacted]")), live[2], "0"]);
});

test("a recording must exist to be replayed, be one, and be alone in its process", async () => {
  const file = join(folder(), "x.json");
  const run = (): string => "ran";
  await expect(recordTraffic(file, run, { mode: "replay" })).rejects.toMatchObject({ code: "RECORDING_MISSING" });
  expect(await recordTraffic(file, run)).toBe("ran");
  expect(existsSync(file)).toBe(false);
  for (const text of ["{", "[]", '{"recording":"skillhost","version":2}', '{"recording":"skillhost","version":1,"http":[{}]}']) {
    writeFileSync(file, text);
    await expect(recordTraffic(file, run), text).rejects.toMatchObject({
      code: "RECORDING_INVALID",
      message: expect.stringContaining(file),
    });
  }
  const inner = (): Promise<string> => recordTraffic(file, run, { mode: "record" });
  await expect(recordTraffic(file, inner, { mode: "record" })).rejects.toMatchObject({ code: "RECORDING_ACTIVE" });
  // Everything is as before, also after a failure.
  const { fetch } = globalThis;
  await expect(recordTraffic(file, () => Promise.reject(new Error("wrong")), { mode: "record" })).rejects.toThrow("wrong");
  expect(globalThis.fetch).toBe(fetch);
  expect(await recordTraffic(file, run, { mode: "record" })).toBe("ran");
});

test("the variable SKILLHOST_RECORDINGS decides for all tests", async () => {
  const file = join(folder(), "x.json");
  vi.stubEnv("SKILLHOST_RECORDINGS", "record");
  onTestFinished(() => void vi.unstubAllEnvs());
  await recordTraffic(file, () => {});
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ recording: "skillhost", version: 1 });
  vi.stubEnv("SKILLHOST_RECORDINGS", "on");
  await expect(recordTraffic(file, () => {})).rejects.toMatchObject({ code: "RECORDING_MODE" });
});

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { extract, list } from "tar";
import { afterEach, describe, expect, test } from "vitest";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

interface Begun {
  readonly client: TestClient;
  readonly place: string;
  readonly collect: (params: object) => Promise<Json>;
  readonly refusal: (params: object) => Promise<string>;
}

const token = `ghp_${"a1".repeat(12)}`;

async function begin(): Promise<Begun> {
  served = await Served.start({ files: { "logs/app.log": `token ${token} of a secret-word\n`, "logs/deep/b.log": "b\n" } });
  served.server.secrets.add("secret-word");
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  served.says(`Do not show ${token}.`);
  await client.say(sessionId, "Hi.");
  const method = "session.debug.collectLogs";
  return {
    client,
    place: join(served.folder, "out"),
    collect: (params) => client.request(method, { sessionId, ...params }),
    refusal: async (params) => (await client.refusal(method, { sessionId, ...params })).message,
  };
}

describe("the logs of a session", () => {
  test("are staged in a folder, without what looks like a credential", async () => {
    const { collect, place } = await begin();
    const { kind, path, entries, skippedEntries } = await collect({
      destination: { kind: "directory", outputDirectory: place },
      additionalEntries: [
        { kind: "directory", path: "logs", bundlePath: "app" },
        { kind: "file", path: "logs/app.log", bundlePath: "raw.log", redaction: "none" },
        { kind: "file", path: "logs/none.log", bundlePath: "none.log" },
        { kind: "file", path: "logs/app.log", bundlePath: "raw.log" },
      ],
    });
    expect([kind, path]).toEqual(["directory", place]);
    expect(entries.map(({ bundlePath, source }: Json) => [bundlePath, source]).sort()).toEqual([
      ["app/app.log", "additional"],
      ["app/deep/b.log", "additional"],
      ["events.jsonl", "events"],
      ["raw.log", "additional"],
    ]);
    expect(skippedEntries.map(({ bundlePath }: Json) => bundlePath)).toEqual(["process.log", "none.log", "raw.log"]);
    const events = readFileSync(join(place, "events.jsonl"), "utf8");
    expect(
      events
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).type),
    ).toContain("assistant.message");
    expect(events).not.toContain(token);
    expect(readFileSync(join(place, "app/app.log"), "utf8")).toBe("token [redacted] of a [redacted]\n");
    expect(readFileSync(join(place, "raw.log"), "utf8")).toContain(token);
  });

  test("are one archive, which replaces no other when that is wanted", async () => {
    const { collect, place } = await begin();
    const outputPath = join(place, "bundle.tgz");
    const archive = (noOverwrite: boolean): Promise<Json> => collect({ destination: { kind: "archive", outputPath, noOverwrite } });
    const paths = [];
    for (const noOverwrite of [false, true, true, false]) paths.push((await archive(noOverwrite)).path);
    expect(paths).toEqual([outputPath, join(place, "bundle (1).tgz"), join(place, "bundle (2).tgz"), outputPath]);
    expect(readdirSync(place).sort()).toEqual(["bundle (1).tgz", "bundle (2).tgz", "bundle.tgz"]);
    const names: string[] = [];
    await list({ file: outputPath, onReadEntry: (entry) => void names.push(entry.path) });
    expect(names).toContain("./events.jsonl");
    mkdirSync(join(place, "again"));
    await extract({ file: outputPath, cwd: join(place, "again") });
    expect(existsSync(join(place, "again/events.jsonl"))).toBe(true);
  });

  test("are only those that are wanted, and none when a required one is missing", async () => {
    const { collect, refusal, place } = await begin();
    const destination = { kind: "directory", outputDirectory: place };
    writeFileSync(join(served.folder, "logs/image.png"), Buffer.from([0xff, 0xfe, 0x00, 0x01]));
    const image = { kind: "file", path: "logs/image.png", bundlePath: "image.png" };
    const include = { events: false, processLogs: false };
    const { entries, skippedEntries } = await collect({ destination, include, additionalEntries: [image] });
    expect([entries, skippedEntries]).toEqual([[], [expect.objectContaining({ reason: expect.stringContaining("not text") })]]);
    const missing = { ...image, path: "gone.png", required: true };
    expect(await refusal({ destination: { ...destination, outputDirectory: `${place}2` }, additionalEntries: [missing] })).toContain(
      "is required",
    );
    expect(existsSync(`${place}2`)).toBe(false);
  });

  test.each<readonly [object, string]>([
    [{}, "destination must be an object"],
    [{ destination: { kind: "cloud" } }, "destination.kind must be"],
    [{ destination: { kind: "archive" } }, "outputPath must be a string"],
    ...["../a", "/a", "..", ".", "a/../../b", "C:\\a", "..\\a"].map(
      (bundlePath) =>
        [
          { destination: { kind: "directory", outputDirectory: "o" }, additionalEntries: [{ kind: "file", path: "a", bundlePath }] },
          "bundlePath must be",
        ] as const satisfies readonly [object, string],
    ),
  ])("are not written for %j", async (params, why) => {
    const { refusal } = await begin();
    expect(await refusal(params)).toContain(why);
    expect(readdirSync(served.folder)).not.toContain("o");
  });
});

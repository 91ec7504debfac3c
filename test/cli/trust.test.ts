import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runCli, skillDocument, toolModule, type Workplace, workplace } from "./run-cli.ts";

let place: Workplace;
let home: string;

beforeEach(() => {
  place = workplace({
    "skills/greeter/SKILL.md": skillDocument("greeter"),
    "skills/greeter/tools/greet.ts": toolModule("greet", "hello"),
    "skillhost.json": '{ "trust": { "policy": { "project": "require" } } }',
  });
  home = place.at("home");
  vi.stubEnv("SKILLHOST_HOME", home);
});

afterEach(() => {
  vi.unstubAllEnvs();
  place[Symbol.dispose]();
});

const cli = (...argv: string[]) => runCli(argv, { cwd: place.path });

async function json(
  ...argv: string[]
): Promise<{ ok: boolean; data: Record<string, unknown>; error?: { code: string }; diagnostics: { code: string }[] }> {
  return JSON.parse((await cli(...argv, "--json")).stdout);
}

test("a signed skill runs where signatures are required, until a byte changes", async () => {
  expect(await cli("sign", "greeter")).toMatchObject({ code: 1, stderr: expect.stringContaining("skillhost keys new") });
  const made = await cli("keys", "new", "alice@example.com");
  expect(made.stdout).toMatch(/^ed25519 [A-Za-z0-9+/]{43}= alice@example\.com\n$/);
  expect((await cli("call", "greet", "{}", "--yes")).code).toBe(1);

  const signed = await cli("sign", "greeter", "--expires", "90d");
  expect(signed.stdout).toMatch(
    /^Signed greeter: 2 files and 1 tool, with [0-9a-f]{32} alice@example\.com, until \d{4}-\d\d-\d\d → skills\/greeter\/skill\.sig\.json\n$/,
  );
  expect(await cli("call", "greet", '{"name":"Bo"}', "--yes")).toMatchObject({ code: 0, stdout: "hello Bo\n" });
  expect((await cli("list")).stdout).toContain("greeter  active  signed by alice@example.com");
  expect((await cli("explain", "greeter")).stdout).toContain(
    'trust signed by alice@example.com; signatures of the scope "project": require',
  );

  place.write("skills/greeter/tools/greet.ts", toolModule("greet", "hullo"));
  expect((await cli("call", "greet", "{}", "--yes")).code).toBe(1);
  const listed = await json("list");
  expect(listed.data["skills"]).toMatchObject([
    { state: "refused", trust: { status: "invalid" }, diagnostics: [{ code: "TRUST_FILE_CHANGED" }] },
  ]);
  expect((await cli("doctor")).stdout).toContain("TRUST_FILE_CHANGED");
  expect((await cli("sign", "skills/greeter")).code).toBe(0);
  expect((await cli("call", "greet", "{}", "--yes")).code).toBe(0);
});

test("a signature covers tools that a plugin's runner creates from a skill's files, and no tools of the plugin itself", async () => {
  place.write("skills/greeter/tools/words.txt", "Words of the skill.");
  place.write(
    "texts.mjs",
    `import { readFileSync } from "node:fs";
import { definePlugin, defineTool } from "skillhost";
const textOf = (file, checked) => (checked ? Buffer.from(checked.read(file).bytes) : readFileSync(file)).toString("utf8");
const tool = (file, checked) => ({ name: "words", description: textOf(file, checked), handler: () => "words" });
export default definePlugin({
  name: "texts",
  activate(api) {
    api.addTools(defineTool("other", { description: "Of the plugin.", handler: () => "other" }));
    api.addToolRunner({
      extensions: [".txt"],
      runsCheckedFiles: true,
      load: async (file, { skill, checked }) => ({ tools: [api.createTool(tool(file, checked), { ofSkill: { name: skill.name, file } })], files: new Set([file]), diagnostics: [] }),
    });
  },
});
`,
  );
  place.write("skillhost.json", '{ "plugins": ["./texts.mjs"], "trust": { "policy": { "project": "require" } } }');
  await cli("keys", "new", "alice");
  expect((await json("sign", "greeter")).data["tools"]).toBe(2);
  expect(await cli("call", "words", "{}", "--yes")).toMatchObject({ code: 0, stdout: "words\n" });
});

test("another author's key counts once it is trusted, and never again once it is revoked", async () => {
  await cli("keys", "new", "alice");
  await cli("sign", "greeter");
  const { public: line, id } = (await json("keys", "export")).data as { public: string; id: string };
  vi.stubEnv("SKILLHOST_HOME", place.at("another-home"));
  const codes = async () =>
    ((await json("list")).data["skills"] as { diagnostics: { code: string }[] }[])[0]!.diagnostics.map(({ code }) => code);
  expect(await codes()).toEqual(["TRUST_KEY_UNKNOWN"]);
  expect((await cli("keys", "trust", ...line.split(" "))).stdout).toBe(`Trusted ${id} alice.\n`);
  expect(await codes()).toEqual([]);
  expect((await cli("keys", "revoke", "alice", "--reason", "the laptop was stolen")).code).toBe(0);
  expect(await codes()).toEqual(["TRUST_KEY_REVOKED"]);
  expect((await json("keys", "trust", line)).error?.code).toBe("KEY_REVOKED");
  expect((await cli("keys", "list")).stdout).toMatch(new RegExp(`^revoked\n {2}${id} {2}\\d{4}-\\d\\d-\\d\\d the laptop was stolen\n$`));
});

describe("signing keys", () => {
  test("keys are readable by their owner only, and encrypted if there is a passphrase", async () => {
    writeFileSync(place.at("secret"), "correct horse\n");
    writeFileSync(place.at("wrong"), "battery staple\n");
    const { data } = await json("keys", "new", "alice", "--passphrase-file", "secret");
    const file = data["file"] as string;
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, "keys")).mode & 0o777).toBe(0o700);
    expect(readFileSync(file, "utf8")).not.toContain('"private"');
    expect((await json("sign", "greeter")).error?.code).toBe("KEY_PASSPHRASE");
    expect((await json("sign", "greeter", "--passphrase-file", "wrong")).error?.code).toBe("KEY_PASSPHRASE");
    expect((await json("sign", "greeter", "--passphrase-file", "secret")).ok).toBe(true);
    chmodSync(file, 0o644);
    expect((await cli("keys", "list")).stderr).toContain("Other users of this machine can read");
  });

  test("a key is selected by name if there are several", async () => {
    await cli("keys", "new", "alice");
    const { id } = (await json("keys", "new", "bob")).data as { id: string };
    expect((await json("sign", "greeter")).error?.code).toBe("KEY_AMBIGUOUS");
    expect((await json("sign", "greeter", "--key", "carol")).error?.code).toBe("KEY_UNKNOWN");
    expect((await json("sign", "greeter", "--key", "bob")).data["key"]).toBe(id);
  });
});

test("a folder with an error or a link, or without a skill, is not signed", async () => {
  await cli("keys", "new", "alice");
  place.write("skills/greeter/tools/broken.ts", "export default {");
  expect(await json("sign", "greeter")).toMatchObject({ error: { code: "SIGN_REFUSED" }, diagnostics: [{ code: "MODULE_SYNTAX" }] });
  mkdirSync(place.at("empty"));
  expect((await json("sign", "empty")).error?.code).toBe("SKILL_UNKNOWN");
  expect((await json("sign", "missing")).error?.code).toBe("SKILL_UNKNOWN");
  expect((await cli("sign", "greeter", "--expires", "yesterday")).code).toBe(2);
});

describe("a project's configuration", () => {
  const policy = (text: string): void => place.write("skillhost.json", `{ "trust": ${text} }`);
  const state = async () => ((await json("list")).data["skills"] as { state: string }[])[0]?.state;

  test("a project cannot reduce the checks of its user", async () => {
    policy('{ "policy": "off" }');
    expect(await state()).toBe("active");
    place.write("home/trust.json", '{ "policy": { "project": "require" } }');
    expect(await state()).toBe("refused");
  });

  test("a project cannot add trusted authors, but can restrict them", async () => {
    const alice = ((await json("keys", "new", "alice")).data as { public: string }).public;
    const bob = ((await json("keys", "new", "bob")).data as { public: string }).public;
    await cli("sign", "greeter", "--key", "bob");
    policy(`{ "keys": [${JSON.stringify(bob)}] }`);
    expect(await cli("list")).toMatchObject({ code: 2, stderr: expect.stringContaining("trust.onlyKeys") });
    policy(`{ "policy": "require", "onlyKeys": [${JSON.stringify(alice)}] }`);
    expect((await json("list")).data["skills"]).toMatchObject([{ diagnostics: [{ code: "TRUST_KEY_NOT_EXPECTED" }] }]);
    await cli("sign", "greeter", "--key", "alice");
    expect(await state()).toBe("active");
    vi.stubEnv("SKILLHOST_HOME", place.at("another-home"));
    const [skill] = (await json("list")).data["skills"] as { diagnostics: { code: string; message: string }[] }[];
    expect(skill?.diagnostics).toMatchObject([{ code: "TRUST_KEY_UNKNOWN", message: expect.stringContaining("This project expects it") }]);
    expect((await cli("keys", "trust", "skillhost.json")).code).toBe(0);
    expect(await state()).toBe("active");
  });

  test("an invalid trust configuration of a project or user is refused", async () => {
    for (const text of [
      "1",
      '{ "policy": "maybe" }',
      '{ "policy": { "everyone": "off" } }',
      '{ "onlyKeys": ["rsa 1"] }',
      '{ "directory": "." }',
    ]) {
      policy(text);
      expect((await cli("list")).code).toBe(2);
    }
    policy("{}");
    place.write("home/trust.json", '{ "policy": { "project": "requir');
    expect((await json("list")).error?.code).toBe("TRUST_FILE_INVALID");
  });
});

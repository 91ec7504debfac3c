import { createHash } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { folderDigest } from "../../src/packages/sources/folder-digest.ts";
import { skillDocument } from "../cli/run-cli.ts";
import { json, lintTool, place, read, run, useProjects } from "./project-kit.ts";
import { packageTarball, tarball } from "./tar-kit.ts";

useProjects();

/** What the site answers, by path. A number is a status; an address a redirect. */
let pages: Record<string, string | Buffer | number | URL>;
let origin: string;
let close: () => Promise<void>;
beforeEach(async () => {
  pages = {};
  const server = createServer((request, response) => {
    const page = pages[request.url!] ?? 404;
    if (page instanceof URL) response.writeHead(302, { location: page.href }).end();
    else if (typeof page === "number") response.writeHead(page).end("<html>");
    else response.end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
});
afterEach(() => close());

const sha256 = (data: string | Buffer): string => `sha256:${createHash("sha256").update(data).digest("hex")}`;
const project = (): string[] =>
  readdirSync(place.at("project"))
    .filter((name) => name !== "node_modules")
    .sort();
const lock = (): Record<string, { source: Record<string, string> }> => JSON.parse(read("project/skillhost-lock.json")).skills;
const linter = { "SKILL.md": skillDocument("linter"), "tools/lint.json": JSON.stringify(lintTool) };
const archiveOf = (files: Readonly<Record<string, string>>): Buffer =>
  tarball(Object.entries(files).map(([path, data]) => ({ path, data })));

/** Publishes a skill in the shape of March 2026. */
function publish(name: string, content: string | Buffer, more: object = {}): void {
  const isArchive = Buffer.isBuffer(content);
  const url = isArchive ? `${name}.tar.gz` : `${name}/SKILL.md`;
  pages[`/.well-known/agent-skills/${url}`] = content;
  const entry = { name, type: isArchive ? "archive" : "skill-md", description: "A skill.", url, digest: sha256(content), ...more };
  const before = pages["/.well-known/agent-skills/index.json"];
  const { skills } = before === undefined ? { skills: [] } : (JSON.parse(String(before)) as { skills: object[] });
  const $schema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
  pages["/.well-known/agent-skills/index.json"] = JSON.stringify({ $schema, skills: [...skills, entry] });
}

test("the digest of a folder is that of the index of February 2026", () => {
  const files = { "scripts/run.sh": sha256("#!/bin/sh\n"), "SKILL.md": sha256("# Hello\n") };
  expect(folderDigest(files)).toBe("sha256:34f7a8c484e9991f3e71a309f31332d6335efc01f544105c4185a7c4ab12eb1e");
});

test("a site with documents and archives: shown, chosen, copied, locked, updated", async () => {
  publish("greeter", skillDocument("greeter"));
  publish("linter", archiveOf(linter));
  const shown = await run(["add", origin], { isTTY: true, answer: (question) => (question.startsWith("Which") ? "all" : "y") });
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.stdout).toContain("contains 2 skills:\n   1. greeter\n   2. linter\n");
  expect(shown.stdout).toContain("description: Checks a file.");
  expect(lock()["skills/linter"]?.source).toMatchObject({
    kind: "index",
    url: `${origin}/.well-known/agent-skills/index.json`,
    path: "linter",
  });
  expect((await run(["verify"])).code).toBe(0);
  expect((await run(["update"])).stdout).toBe("Already up to date.\n");
  pages = {};
  publish("greeter", skillDocument("greeter", "Greets cats."));
  const updated = await run(["update", "--yes"]);
  expect(updated.stdout).toContain("+description: Greets cats.");
  expect(updated.stdout).toContain("SKILL_GONE");
  expect(read("project/skills/greeter/SKILL.md")).toContain("Greets cats.");
  rmSync(place.at("project/skills/greeter"), { recursive: true });
  expect(await json(["ci"])).toMatchObject({ code: 0, data: { copied: ["skills/greeter"] } });
  rmSync(place.at("project/skills/greeter"), { recursive: true });
  publish("greeter2", skillDocument("greeter2"));
  pages["/.well-known/agent-skills/greeter/SKILL.md"] = skillDocument("greeter", "Something else.");
  expect((await json(["ci"])).error?.code).toBe("INDEX_DIGEST");
});

test("an index of February 2026 has a digest for each file", async () => {
  const base = "/.well-known/agent-skills";
  const files = Object.entries(linter).map(([path, text]) => ({ path, digest: sha256(text) }));
  const digest = folderDigest(Object.fromEntries(files.map((file) => [file.path, file.digest])));
  pages[`${base}/index.json`] = JSON.stringify({ version: "0.2.0", skills: [{ name: "linter", description: "Checks.", digest, files }] });
  for (const [path, text] of Object.entries(linter)) pages[`${base}/linter/${path}`] = text;
  expect(await run(["add", origin, "--yes"])).toMatchObject({ code: 0 });
  expect(readdirSync(place.at("project/skills/linter")).sort()).toEqual(["SKILL.md", "tools"]);
  rmSync(place.at("project/skills"), { recursive: true });
  rmSync(place.at("project/skillhost-lock.json"));
  pages[`${base}/linter/tools/lint.json`] = JSON.stringify({ ...lintTool, description: "Sends a file." });
  expect((await json(["add", origin, "--yes"])).error?.code).toBe("INDEX_DIGEST");
  pages[`${base}/index.json`] = JSON.stringify({
    version: "0.2.0",
    skills: [{ name: "linter", digest: sha256("x"), files: files.slice(0, 1) }],
  });
  expect((await json(["add", origin, "--yes"])).error?.code).toBe("INDEX_DIGEST");
  expect(existsSync(place.at("project/skills"))).toBe(false);
});

test("an index of version 0.1 has no digests, which is shown", async () => {
  pages["/docs/.well-known/skills/index.json"] = JSON.stringify({
    skills: [{ name: "linter", description: "Checks.", files: Object.keys(linter) }],
  });
  for (const [path, text] of Object.entries(linter)) pages[`/docs/.well-known/skills/linter/${path}`] = text;
  const added = await run(["add", `${origin}/docs/`, "--yes"]);
  expect([added.code, added.stdout]).toEqual([0, expect.stringContaining("the index has no digests")]);
  expect(lock()["skills/linter"]?.source["url"]).toBe(`${origin}/docs/.well-known/skills/index.json`);
});

test.each<[string, () => void, string, string]>([
  [
    "whose document was changed",
    () => publish("greeter", skillDocument("greeter"), { digest: sha256("x") }),
    "INDEX_DIGEST",
    "greeter/SKILL.md",
  ],
  ["whose archive was changed", () => publish("linter", archiveOf(linter), { digest: sha256("x") }), "INDEX_DIGEST", "linter.tar.gz"],
  ["without a digest", () => publish("greeter", "x", { digest: undefined }), "INDEX_INVALID", "digest"],
  ["with a name that leads out", () => publish("../evil", "x"), "INDEX_INVALID", "name"],
  ["with an unknown type", () => publish("greeter", "x", { type: "program" }), "INDEX_INVALID", '"program"'],
  ["with a file: address", () => publish("greeter", "x", { url: "file:///etc/passwd" }), "INDEX_INVALID", "url"],
  [
    "with a file that leads out",
    () => publish("greeter", "x", { files: [{ path: "../x", digest: sha256("x") }] }),
    "INDEX_INVALID",
    "points out",
  ],
  ["with a file in .git", () => publish("greeter", "x", { files: ["SKILL.md", ".git/config"] }), "INDEX_INVALID", "git repository"],
  ["without a SKILL.md", () => publish("greeter", "x", { files: ["a"] }), "INDEX_INVALID", "no SKILL.md"],
  ["that lists nothing", () => (pages["/.well-known/agent-skills/index.json"] = '{"skills":[]}'), "INDEX_INVALID", "no skill"],
  [
    "whose archive leads out",
    () => publish("linter", tarball([{ path: "SKILL.md", data: "x" }, { path: "../x" }])),
    "PACKAGE_TARBALL",
    "points out",
  ],
  [
    "whose archive has .git at its top",
    () => publish("linter", tarball([{ path: "SKILL.md" }, { path: ".git/config" }])),
    "PACKAGE_TARBALL",
    "git",
  ],
  ["whose archive has a link", () => publish("linter", tarball([{ path: "l", type: "2", link: "/" }])), "PACKAGE_TARBALL", "link"],
  ["whose archive is a zip", () => publish("linter", Buffer.from("PK\u0003\u0004")), "PACKAGE_TARBALL", "gzipped"],
  ["whose archive has no skill", () => publish("linter", archiveOf({ "a/b": "c" })), "INDEX_INVALID", "no SKILL.md"],
  [
    "whose file is missing",
    () => {
      publish("greeter", "x");
      delete pages["/.well-known/agent-skills/greeter/SKILL.md"];
    },
    "SOURCE_FETCH",
    "404",
  ],
])("an index %s is refused, and nothing has changed", async (_what, make, code, text) => {
  make();
  expect((await json(["add", origin, "--yes"])).error).toEqual({ code, message: expect.stringContaining(text) });
  expect(project()).toEqual(["package.json"]);
});

test("an entry that cannot be used is named, and the others are copied", async () => {
  publish("greeter", skillDocument("greeter"));
  publish("Bad Name!", "x");
  const added = await run(["add", origin, "--yes"]);
  expect([added.code, added.stderr]).toEqual([0, expect.stringMatching(/skills\[1\] of .* is not used: its name/)]);
});

test("a redirect is followed and shown, but not to an address without https elsewhere", async () => {
  publish("greeter", skillDocument("greeter"));
  pages["/short/.well-known/agent-skills/index.json"] = new URL(`${origin}/.well-known/agent-skills/index.json`);
  const added = await run(["add", `${origin}/short`, "--yes"]);
  expect([added.code, added.stderr]).toEqual([0, expect.stringContaining("redirects to")]);
  pages["/out/.well-known/agent-skills/index.json"] = new URL("http://example.org/index.json");
  expect((await json(["add", `${origin}/out`, "--yes"])).error?.code).toBe("SOURCE_FETCH");
});

test("a tarball of skills needs no package.json", async () => {
  pages["/skills-1.0.tar.gz"] = archiveOf({
    "skills-1.0/README.md": "x",
    ...Object.fromEntries(Object.entries(linter).map(([path, text]) => [`skills-1.0/skills/linter/${path}`, text])),
  });
  expect(await run(["add", `${origin}/skills-1.0.tar.gz`, "--yes"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Added skills/linter."),
  });
  expect(lock()["skills/linter"]?.source).toMatchObject({ kind: "archive", url: `${origin}/skills-1.0.tar.gz`, path: "skills/linter" });
  rmSync(place.at("project/skills"), { recursive: true });
  expect(await json(["ci"])).toMatchObject({ code: 0, data: { copied: ["skills/linter"] } });
  pages["/download?id=7"] = archiveOf({ "SKILL.md": skillDocument("greeter") });
  expect((await run(["add", `${origin}/download?id=7`, "--yes"])).stdout).toContain("Added skills/greeter.");
});

test("a tarball with a package.json is still npm's", async () => {
  const manifest = { name: "packaged", version: "1.0.0" };
  pages["/packaged-1.0.0.tgz"] = packageTarball(manifest, { "SKILL.md": skillDocument("packaged") });
  const added = await run(["add", `${origin}/packaged-1.0.0.tgz`, "--yes"], { env: { npm_config_offline: "false" } });
  expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining("Installed packaged@1.0.0.") });
  expect(project()).toEqual(["package-lock.json", "package.json", "skillhost-lock.json"]);
});

test.each<[string, () => void, string]>([
  ["neither an index nor a tarball", () => (pages["/"] = "<html>"), "SOURCE_UNKNOWN"],
  ["only an error", () => {}, "SOURCE_UNKNOWN"],
  ["an index that is a page", () => (pages["/.well-known/agent-skills/index.json"] = "<html>"), "SOURCE_UNKNOWN"],
])("a site with %s is explained", async (_what, make, code) => {
  make();
  expect((await json(["add", `${origin}/`, "--yes"])).error?.code).toBe(code);
});

test("a site that cannot be reached, and one without https, are errors", async () => {
  await close();
  expect((await json(["add", origin, "--yes"])).error?.code).toBe("SOURCE_FETCH");
  place.write(
    "project/skillhost-lock.json",
    '{"lockfileVersion":1,"packages":{},"skills":{"skills/x":{"name":"x","tools":{},"source":{"kind":"index","url":"http://example.org/","path":"x","digest":"sha256:0"},"files":{}}}}',
  );
  expect((await json(["ci"])).error).toEqual({
    code: "SOURCE_FETCH",
    message: expect.stringContaining("not an address that can be fetched"),
  });
});

import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { packagesRoot } from "../../src/skills/store/package-skills.ts";
import { discoverRoot } from "../../src/skills/store/skill-roots.ts";
import { type Files, openKit, put, putAll, short, skillMd, tempFolder, toolSource } from "./kit.ts";

const manifest = (name: string, fields: object = {}): string => JSON.stringify({ name, version: "1.0.0", ...fields });

/** A project with these packages in `node_modules`. By default all are dependencies whose skills it uses. */
function project(packages: Readonly<Record<string, Files>>, dependencies: object = {}): string {
  const names = Object.keys(packages).map((name) => [name, "*"]);
  const own = {
    "package.json": manifest("project", {
      dependencies: Object.fromEntries(names),
      skillhost: { packages: Object.keys(packages) },
      ...dependencies,
    }),
  };
  const folder = tempFolder(own);
  for (const [name, files] of Object.entries(packages)) {
    putAll(join(folder, "node_modules", name), { "package.json": manifest(name), ...files });
  }
  return folder;
}

function found(folder: string): string[] {
  return discoverRoot(packagesRoot(folder)).folders.map((skill) => relative(join(folder, "node_modules"), skill));
}

const skill = (name: string, at = `skills/${name}`): Files => ({ [`${at}/SKILL.md`]: skillMd(name) });

test.each<[string, Files, readonly string[]]>([
  ["skills below its folder skills", { ...skill("a"), ...skill("b") }, ["pkg/skills/a", "pkg/skills/b"]],
  ["skills three levels deep, and none deeper", { ...skill("c", "skills/x/y/c"), ...skill("d", "skills/x/y/z/d") }, ["pkg/skills/x/y/c"]],
  ["no skill within a skill", { ...skill("a"), ...skill("b", "skills/a/b") }, ["pkg/skills/a"]],
  ["itself, when it is a skill", { "SKILL.md": skillMd("pkg"), ...skill("example") }, ["pkg"]],
  ["itself, by a skill.json with tools", { "skill.json": '{"name":"pkg","tools":[]}' }, ["pkg"]],
  ["not itself, by a skill.json that says something else", { "skill.json": '{"manifest":{}}' }, []],
  [
    "what skills names",
    { "package.json": manifest("pkg", { skills: ["./deep/a"] }), ...skill("a", "deep/a"), ...skill("b") },
    ["pkg/deep/a"],
  ],
  [
    "what pi names, with patterns",
    { "package.json": manifest("pkg", { pi: { skills: ["own/*", "!own/b"] } }), ...skill("a", "own/a"), ...skill("b", "own/b") },
    ["pkg/own/a"],
  ],
  [
    "what agents names",
    { "package.json": manifest("pkg", { agents: { skills: [{ path: "own/a" }] } }), ...skill("a", "own/a") },
    ["pkg/own/a"],
  ],
  [
    "what skillhost names, before all others",
    { "package.json": manifest("pkg", { skillhost: { skillDirectories: ["own"] }, skills: [] }), ...skill("a", "own/a"), ...skill("b") },
    ["pkg/own/a"],
  ],
  ["none, when it names none", { "package.json": manifest("pkg", { skills: [] }), ...skill("a") }, []],
  ["not what other hosts fetch", { "package.json": manifest("pkg", { skills: ["npm:other", 7, null] }), ...skill("a") }, []],
  [
    "the convention, when the key is of another type",
    { "package.json": manifest("pkg", { skills: { a: 1 }, pi: [] }), ...skill("a") },
    ["pkg/skills/a"],
  ],
  ["nothing, when package.json is not valid JSON", { "package.json": "{", ...skill("a") }, ["pkg/skills/a"]],
])("a package provides %s", (_what, files, expected) => {
  expect(found(project({ pkg: files }))).toEqual(expected);
});

test("only direct runtime dependencies count, and only those that were requested", () => {
  const folder = project(
    { "@me/dev": skill("dev"), optional: skill("optional"), transitive: skill("transitive"), peer: skill("peer"), plain: skill("plain") },
    {
      dependencies: { plain: "^1" },
      devDependencies: { "@me/dev": "1" },
      optionalDependencies: { optional: "1", absent: "1" },
      peerDependencies: { peer: "1" },
    },
  );
  expect(found(folder)).toEqual(["optional/skills/optional", "plain/skills/plain"]);
  for (const skillhost of [undefined, {}, { packages: [] }, { packages: "plain" }, { packages: [{}] }, []]) {
    put(join(folder, "package.json"), manifest("project", { dependencies: { plain: "^1" }, skillhost }));
    expect(found(folder)).toEqual([]);
  }
});

test("skillhost itself provides no skills under any name and for any request", () => {
  const folder = project({ skillhost: skill("own"), alias: { "package.json": manifest("skillhost"), ...skill("own") } });
  expect(found(folder)).toEqual([]);
});

test("names that are paths and manifests of other types provide nothing", () => {
  const folder = project(
    { good: skill("good") },
    { dependencies: { good: "1", "../../etc": "1", "a/b": "1", ".": "1", "..": "1", node_modules: "1" } },
  );
  putAll(join(folder, "node_modules/a/b"), skill("inner"));
  expect(found(folder)).toEqual(["good/skills/good"]);
  for (const text of ["[]", "null", '"x"', '{"dependencies":[]}', '{"dependencies":null}', "\0"]) {
    put(join(folder, "package.json"), text);
    expect(found(folder)).toEqual([]);
  }
});

test("paths and links that lead out of the package are not followed", () => {
  const outside = tempFolder(skill("stolen"));
  const folder = project({
    up: { "package.json": manifest("up", { skills: ["../other/skills", "/etc", "skills"] }) },
    linked: skill("fine"),
    other: skill("other"),
  });
  symlinkSync(join(outside, "skills/stolen"), join(folder, "node_modules/linked/skills/stolen"));
  mkdirSync(join(folder, "node_modules/up/skills"));
  symlinkSync(outside, join(folder, "node_modules/up/skills/out"));
  expect(found(folder)).toEqual(["linked/skills/fine", "other/skills/other"]);
  const { diagnostics } = discoverRoot(packagesRoot(folder));
  expect(diagnostics.map(({ code, source }) => `${code} ${source}`)).toEqual(["PACKAGE_SKILL_PATH up", "PACKAGE_SKILL_PATH up"]);
});

test("workspaces are found as Node.js does: in node_modules of the workspace's root", () => {
  const root = tempFolder({ "package.json": manifest("root", { workspaces: ["packages/*"] }) });
  putAll(join(root, "packages/app"), {
    "package.json": manifest("app", { dependencies: { tools: "*" }, skillhost: { packages: ["tools"] } }),
  });
  putAll(join(root, "packages/tools"), { "package.json": manifest("tools"), ...skill("hammer") });
  mkdirSync(join(root, "node_modules"));
  symlinkSync("../packages/tools", join(root, "node_modules/tools"));
  const { folders, packages } = discoverRoot(packagesRoot(join(root, "packages/app")));
  expect(folders).toEqual([join(root, "node_modules/tools/skills/hammer")]);
  expect(packages?.get(folders[0]!)).toEqual({ name: "tools", version: "1.0.0" });
});

const withTool = (version: string, answer: string): Files => ({
  "package.json": JSON.stringify({ name: "kit", version, type: "module" }),
  "skills/kit/SKILL.md": skillMd("kit"),
  "skills/kit/tools/say.ts": toolSource("say", JSON.stringify(answer)),
});

test("a host serves skills of packages with the package's name, and the project's own skills take precedence", async () => {
  const folder = project({ kit: withTool("1.2.3", "package") });
  const own = tempFolder();
  const kit = await openKit([own], { packageSkills: [folder], isolation: "off" });
  expect(await kit.says("say")).toBe("package");
  expect(kit.skill("kit")).toMatchObject({ state: "active", package: { name: "kit", version: "1.2.3" } });
  expect(kit.host.explain("kit").skills).toMatchObject([{ name: "kit", package: { name: "kit", version: "1.2.3" } }]);
  await kit.saved(() => putAll(own, { "kit/SKILL.md": skillMd("kit"), "kit/tools/say.ts": toolSource("say", '"own"') }));
  expect(await kit.says("say")).toBe("own");
  expect(kit.host.skills.filter(({ name }) => name === "kit").map(({ state, package: of }) => [state, of?.version])).toEqual([
    ["shadowed", "1.2.3"],
    ["active", undefined],
  ]);
});

test("without the option, packages provide nothing", async () => {
  const folder = project({ kit: withTool("1.0.0", "package") });
  const kit = await openKit([join(folder, "skills")], { workingDirectory: folder });
  expect(kit.host.skills.map(({ name }) => name)).toEqual(["the-marker"]);
});

test("skills of packages that are added or removed while the host runs are added and removed", async () => {
  const folder = project({});
  const kit = await openKit([], { packageSkills: [folder], isolation: "off" });
  const added = await kit.saved(() => {
    putAll(join(folder, "node_modules/kit"), withTool("1.0.0", "new"));
    put(join(folder, "package.json"), manifest("project", { dependencies: { kit: "1" }, skillhost: { packages: ["kit"] } }));
  });
  expect(added.map(short)).toEqual(["+kit: +say"]);
  expect(await kit.says("say")).toBe("new");
  const removed = await kit.saved(() => rmSync(join(folder, "node_modules/kit"), { recursive: true }));
  expect(removed.map(short)).toEqual(["-kit: -say"]);
});

test("a new version that npm installs replaces the old one, which is served until then", async () => {
  const folder = project({ kit: withTool("1.0.0", "old") });
  const kit = await openKit([], { packageSkills: [folder], isolation: "off" });
  const at = join(folder, "node_modules/kit");
  const retired = join(folder, "node_modules/.kit-Ab12Cd34");
  // As npm does: the old version is moved aside, the new one is unpacked file by file, and the old one is deleted last.
  const before = await kit.unnoticed(() => {
    renameSync(at, retired);
    putAll(at, { "package.json": withTool("2.0.0", "")["package.json"]! });
  });
  expect(before).toEqual([]);
  expect(await kit.says("say")).toBe("old");
  expect(await kit.unnoticed(() => putAll(at, withTool("2.0.0", "new")))).toEqual([]);
  const after = await kit.saved(() => rmSync(retired, { recursive: true }));
  expect(after.map(short)).toEqual(["~kit: ~say"]);
  expect(await kit.says("say")).toBe("new");
  expect(kit.skill("kit").package).toEqual({ name: "kit", version: "2.0.0" });
});

test("edits in a linked package are reloaded", async () => {
  const folder = project({});
  const source = tempFolder(withTool("1.0.0", "one"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(source, join(folder, "node_modules/kit"));
  put(join(folder, "package.json"), manifest("project", { dependencies: { kit: `file:${source}` }, skillhost: { packages: ["kit"] } }));
  const kit = await openKit([], { packageSkills: [folder], isolation: "off" });
  expect(await kit.says("say")).toBe("one");
  await kit.saved(() => put(join(source, "skills/kit/tools/say.ts"), toolSource("say", '"two"')));
  expect(await kit.says("say")).toBe("two");
  const more = await kit.saved(() => putAll(source, skill("second")));
  expect(more.map(short)).toEqual(["+second"]);
});

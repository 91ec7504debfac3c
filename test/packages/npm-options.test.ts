import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readNpmOptions } from "../../src/packages/npm-options.ts";
import { fitsMachine } from "../../src/packages/resolve-tree.ts";
import { workplace } from "../cli/run-cli.ts";

function read(files: Readonly<Record<string, string>>, env: Readonly<Record<string, string>> = {}): Readonly<Record<string, unknown>> {
  const place = workplace(files);
  onTestFinished(() => place[Symbol.dispose]());
  const places = { npm_config_userconfig: place.at("home/.npmrc"), npm_config_globalconfig: place.at("machine/npmrc") };
  return { ...readNpmOptions({ project: place.at("project"), env: { ...places, ...env } }), at: place.path };
}

test("the environment counts before the project, that before the user, that before the machine", () => {
  const files = {
    "machine/npmrc": "registry=https://machine/\nproxy=http://machine",
    "home/.npmrc": "registry=https://user/\nproxy=http://user",
    "project/.npmrc": "registry=https://project/",
  };
  expect(read(files)).toMatchObject({ registry: "https://project/", proxy: "http://user" });
  expect(read(files, { npm_config_registry: "https://environment/" })).toMatchObject({ registry: "https://environment/" });
});

test("registries of scopes and what is sent to which registry are passed on as they are, with variables filled in", () => {
  const files = {
    "home/.npmrc": '; a comment\n# another\n@me:registry = "https://me.example/"\n//me.example/:_authToken=${TOKEN}\n//x/:_auth=${UNSET}\n',
  };
  expect(read(files, { TOKEN: "t0ken" })).toMatchObject({
    "@me:registry": "https://me.example/",
    "//me.example/:_authToken": "t0ken",
    "//x/:_auth": "${UNSET}",
  });
});

test("reads .npmrc in the form that npm reads: comments after values, sections, arrays, quotes", () => {
  const commented = "registry=https://me.example/ ; our mirror\n//me.example/:_authToken=abc # of CI\ntag = 'next'\nproxy=null";
  const options = read({ "home/.npmrc": commented });
  expect(options).toMatchObject({ registry: "https://me.example/", "//me.example/:_authToken": "abc", defaultTag: "next" });
  expect(options).not.toHaveProperty("proxy");
  const sections = "registry=https://me.example/\n[other]\nregistry=https://other.example/\n@me:registry=https://other.example/";
  expect(read({ "home/.npmrc": sections })).toMatchObject({ registry: "https://me.example/" });
  expect(read({ "home/.npmrc": sections })).not.toHaveProperty("@me:registry");
  expect(read({ "home/.npmrc": 'ca[]="one\\ntwo"\nca[]=${CA}' }, { CA: "three" })).toMatchObject({ ca: ["one\ntwo", "three"] });
  expect(read({ "home/.npmrc": "tag=a\\;b\n__proto__=x\n[__proto__]\noffline=true" })).toMatchObject({ defaultTag: "a;b" });
});

test("nothing turns install scripts on, or lets a dependency come from git", () => {
  const files = { "project/.npmrc": "ignore-scripts=false\nallow-git=all\nallow-remote=all" };
  const env = { npm_config_ignore_scripts: "false", NPM_CONFIG_FOREGROUND_SCRIPTS: "true" };
  expect(read(files, env)).toMatchObject({
    ignoreScripts: true,
    allowGit: "none",
    allowRemote: "root",
    allowFile: "root",
    allowDirectory: "root",
  });
});

test("the cache is npm's own, or the one that is named", () => {
  const { cache } = read({});
  expect(cache).toMatch(/[\\/]\.npm[\\/]_cacache$/);
  const named = read({ "home/.npmrc": "cache=../elsewhere" });
  expect(named["cache"]).toBe(join(String(named["at"]), "elsewhere/_cacache"));
});

test("flags and numbers are read as such; what is not a number is npm's default", () => {
  const files = { "home/.npmrc": "strict-ssl=false\noffline\nfetch-retries=0\nfetch-timeout=soon" };
  const options = read(files);
  expect(options).toMatchObject({ strictSSL: false, offline: true, fetchRetries: 0 });
  expect(options).not.toHaveProperty("timeout");
});

test.each<[object, boolean]>([
  [{}, true],
  [{ os: [process.platform], cpu: [process.arch] }, true],
  [{ os: ["any"] }, true],
  [{ os: `!${process.platform}` }, false],
  [{ os: ["!plan9"] }, true],
  [{ cpu: ["pdp11"] }, false],
  [{ os: 7, cpu: [null] }, true],
])("a package that says %j is for this machine: %s", (manifest, expected) => {
  expect(fitsMachine(manifest as Record<string, unknown>)).toBe(expected);
});

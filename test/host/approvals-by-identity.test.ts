import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Host } from "../../src/host/host.ts";
import type { HostOptions } from "../../src/host/host-options.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { createFileApprovals } from "../../src/trust/approvals.ts";
import { digestOf } from "../../src/trust/folder-digests.ts";
import { type Files, put, putAll, tempFolder } from "../skills/kit.ts";
import { makeKey, resign } from "../trust/signatures/signing-kit.ts";
import { hostIn, serverNamed } from "./servers-kit.ts";

interface Answered {
  readonly asked: number;
  readonly result: string;
  readonly warnings: readonly string[];
}

/** Calls a tool in a new session of a new host, whose user gives this answer. */
async function call(home: string, tool: string, kind: string, options: HostOptions, session: SessionOptions = {}): Promise<Answered> {
  const host: Host = await hostIn(home, options);
  let asked = 0;
  const onPermissionRequest = (() => {
    asked++;
    return { kind };
  }) as SessionOptions["onPermissionRequest"];
  await using opened = await host.createSession({ ...session, onPermissionRequest });
  const warnings: string[] = [];
  opened.on("session.warning", ({ data }) => void warnings.push(String(data["message"])));
  await opened.ready();
  const { resultType: result } = await opened.callTool(tool, {});
  await host.close();
  return { asked, result, warnings };
}

const deployTool = (says: string, description = "Deploys."): string => `import { defineTool } from "skillhost";
export default defineTool("deploy", { description: ${JSON.stringify(description)}, handler: () => ${JSON.stringify(says)} });
`;
const skillFiles = (says: string, description?: string): Files => ({
  "SKILL.md": "---\nname: fmt\ndescription: Formats.\n---\nx\n",
  "tools/deploy.mjs": deployTool(says, description),
});

const forEver = "approve-permanently";
const unasked = { asked: 0, result: "success" };
const askedAgain = { asked: 1, result: "rejected" };

describe("a permanent approval of a skill's tool", () => {
  /** A home, and the skill `fmt` in the folder of another project. */
  function project(): { home: string; root: string; skill: string; options: HostOptions } {
    const home = tempFolder();
    const root = tempFolder();
    const skill = join(root, "fmt");
    putAll(skill, skillFiles("ours"));
    return { home, root, skill, options: { skillDirectories: [root] } };
  }

  test("a permanent approval holds in the next host, even if the code of the handler changed", async () => {
    const { home, skill, options } = project();
    expect(await call(home, "deploy", forEver, options)).toMatchObject({ asked: 1, result: "success" });
    put(join(skill, "tools/deploy.mjs"), deployTool("ours, corrected"));
    expect(await call(home, "deploy", "reject", options)).toMatchObject(unasked);
  });

  test("a permanent approval ends when the contract of the tool changes", async () => {
    const { home, skill, options } = project();
    await call(home, "deploy", forEver, options);
    put(join(skill, "tools/deploy.mjs"), deployTool("ours", "Deploys, and deletes what was there."));
    expect(await call(home, "deploy", "reject", options)).toMatchObject(askedAgain);
  });

  test("a permanent approval does not cover an equal tool of a skill with the same name in another folder", async () => {
    const { home, options } = project();
    await call(home, "deploy", forEver, options);
    const stranger = project();
    expect(await call(home, "deploy", "reject", stranger.options)).toMatchObject(askedAgain);
  });

  test.each(["read", "write", "hosts", "tools", "env", "programs"])(
    "a permanent approval ends when the skill declares other %s",
    async (kind) => {
      const { home, skill, options } = project();
      const declare = (items: readonly string[]): void =>
        put(join(skill, "skill.json"), JSON.stringify({ name: "fmt", permissions: { [kind]: items } }));
      declare(["one"]);
      await call(home, "deploy", forEver, options);
      expect(await call(home, "deploy", "reject", options)).toMatchObject(unasked);
      declare(["one", "two"]);
      expect(await call(home, "deploy", "reject", options)).toMatchObject(askedAgain);
    },
  );

  test("a permanent approval does not cover a folder to which a link at the same path leads", async () => {
    const { home, root, skill } = project();
    const link = join(tempFolder(), "skills");
    symlinkSync(root, link, "junction");
    await call(home, "deploy", forEver, { skillDirectories: [link] });
    expect(await call(home, "deploy", "reject", { skillDirectories: [root] })).toMatchObject(unasked);
    const elsewhere = tempFolder();
    renameSync(skill, join(elsewhere, "fmt"));
    rmSync(link, { recursive: true });
    symlinkSync(elsewhere, link, "junction");
    expect(await call(home, "deploy", "reject", { skillDirectories: [link] })).toMatchObject(askedAgain);
  });

  test("a permanent approval of a signed skill ends when another author signs it or the signature is removed", async () => {
    const { home, skill, root } = project();
    const [alice, mallory] = [makeKey("alice"), makeKey("mallory")];
    const options: HostOptions = {
      skillDirectories: [root],
      trust: { policy: { project: "warn", external: "off" }, keys: [alice.text, mallory.text] },
    };
    put(join(skill, "skill.json"), '{ "name": "fmt", "version": "1.0.0" }');
    await resign(skill, alice, { skill: "fmt", version: "1.0.0" });
    await call(home, "deploy", forEver, options);
    expect(await call(home, "deploy", "reject", options)).toMatchObject(unasked);
    await resign(skill, mallory, { skill: "fmt", version: "1.0.0" });
    expect(await call(home, "deploy", "reject", options)).toMatchObject(askedAgain);
    await resign(skill, alice, { skill: "fmt", version: "1.0.0" });
    expect(await call(home, "deploy", "reject", options)).toMatchObject(unasked);
    rmSync(join(skill, "skill.sig.json"));
    expect(await call(home, "deploy", "reject", options)).toMatchObject(askedAgain);
  });

  test("a permanent approval of a package ends when another version or another integrity is installed", async () => {
    const home = tempFolder();
    const root = tempFolder();
    const install = (version: string, integrity: string): HostOptions => {
      putAll(root, {
        "package.json": '{ "name": "app", "dependencies": { "@a/fmt": "*" } }',
        "node_modules/.package-lock.json": JSON.stringify({ packages: { "node_modules/@a/fmt": { version, integrity } } }),
        "node_modules/@a/fmt/package.json": JSON.stringify({ name: "@a/fmt", version }),
      });
      putAll(join(root, "node_modules/@a/fmt"), skillFiles("packaged"));
      return { skillDirectories: [join(root, "node_modules/@a")], isolation: "off" };
    };
    await call(home, "deploy", forEver, install("1.0.0", "sha512-aaaa"));
    expect(await call(home, "deploy", "reject", install("1.0.0", "sha512-aaaa"))).toMatchObject(unasked);
    expect(await call(home, "deploy", "reject", install("1.0.0", "sha512-bbbb"))).toMatchObject(askedAgain);
    expect(await call(home, "deploy", "reject", install("1.0.1", "sha512-aaaa"))).toMatchObject(askedAgain);
  });

  test("an approval that an earlier version stored by name has no effect, is reported once, and is removed", async () => {
    const { home, options } = project();
    const approvals = createFileApprovals({ directory: join(home, ".kept/approvals") });
    const digest = digestOf({ origin: "skill:fmt", approval: { kind: "custom-tool", toolName: "deploy" } });
    await approvals.remember({
      kind: "tool-permission",
      id: "deploy",
      digest,
      scope: { kind: "user" },
      approvedAt: "2026-01-01T00:00:00.000Z",
    });
    const first = await call(home, "deploy", "reject", options);
    expect(first).toMatchObject(askedAgain);
    expect(first.warnings).toEqual([expect.stringMatching(/"deploy" of skill "fmt".*was ignored and removed.*approve-permanently/)]);
    await expect.poll(() => approvals.list()).toEqual([]);
    const second = await call(home, "deploy", forEver, options);
    expect(second).toMatchObject({ asked: 1, result: "success", warnings: [] });
    expect(await call(home, "deploy", "reject", options)).toMatchObject(unasked);
  });
});

test("a permanent approval of a plugin's tool does not cover a plugin with the same name from another folder", async () => {
  const home = tempFolder();
  const plugin = (says: string): HostOptions => {
    const folder = tempFolder({
      "plugin.mjs": `import { definePlugin } from "skillhost";
export default definePlugin({ name: "tools", activate(api) {
  api.addTools({ name: "deploy", description: "Deploys.", handler: () => ${JSON.stringify(says)} });
} });`,
    });
    return { plugins: [folder] };
  };
  const ours = plugin("ours");
  expect(await call(home, "deploy", forEver, ours)).toMatchObject({ asked: 1, result: "success" });
  expect(await call(home, "deploy", "reject", ours)).toMatchObject(unasked);
  expect(await call(home, "deploy", "reject", plugin("theirs"))).toMatchObject(askedAgain);
});

describe("a permanent approval of a server's tool", () => {
  const base = serverNamed("gh", { env: { MODE: "safe", API_TOKEN: "one" } });
  const { args } = base as { readonly args: readonly string[] };

  test.each<[string, Readonly<Record<string, unknown>>, boolean]>([
    ["the same server", base, false],
    ["the same server with a renewed token", { ...base, env: { MODE: "safe", API_TOKEN: "two" } }, false],
    ["a server with the same name and another argument", { ...base, args: [...args, "approved"] }, true],
    [
      "a server with the same name and another variable in its environment",
      { ...base, env: { MODE: "safe", API_TOKEN: "one", NODE_OPTIONS: "--no-warnings" } },
      true,
    ],
    ["a server with the same name and another value in its environment", { ...base, env: { MODE: "other", API_TOKEN: "one" } }, true],
  ])("%s", async (_what, server, isAsked) => {
    const home = tempFolder();
    expect(await call(home, "gh/who", forEver, { mcpServers: { gh: base } })).toMatchObject({ asked: 1, result: "success" });
    expect(await call(home, "gh/who", "reject", { mcpServers: { gh: server } })).toMatchObject(isAsked ? askedAgain : unasked);
  });

  test("a permanent approval does not cover the same command line in another project", async () => {
    const home = tempFolder();
    const [one, two] = [join(home, "one"), join(home, "two")];
    for (const folder of [one, two]) mkdirSync(folder);
    const at = (workingDirectory: string): HostOptions => ({ mcpServers: { gh: base }, workingDirectory });
    await call(home, "gh/who", forEver, at(one));
    expect(await call(home, "gh/who", "reject", at(one))).toMatchObject(unasked);
    expect(await call(home, "gh/who", "reject", at(two))).toMatchObject(askedAgain);
  });
});

describe("a permanent approval of a pushed tool", () => {
  const pushed = (description: string) => ({ name: "deploy", description, handler: () => "pushed" });

  test("a permanent approval covers an equal definition, and no other definition with the same name", async () => {
    const home = tempFolder();
    const ask = (kind: string, description: string): Promise<Answered> => call(home, "deploy", kind, {}, { tools: [pushed(description)] });
    await ask(forEver, "Deploys.");
    expect(await ask("reject", "Deploys.")).toMatchObject(unasked);
    expect(await ask("reject", "Deploys and deletes.")).toMatchObject(askedAgain);
  });
});

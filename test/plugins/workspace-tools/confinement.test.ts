import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../skills/kit.ts";
import { openWorkspace, type Workspace } from "./workspace-kit.ts";

/** A workspace next to a folder that tools must not access, with links to it. */
async function besideSecrets(): Promise<Workspace & { readonly secrets: string }> {
  const secrets = tempFolder({ "key.txt": "SECRET\n", "deep/key.txt": "SECRET\n" });
  const workspace = await openWorkspace({ "own.txt": "mine\n", "sub/a.txt": "a\n" });
  symlinkSync(join(secrets, "key.txt"), join(workspace.folder, "file-link"));
  symlinkSync(secrets, join(workspace.folder, "folder-link"));
  symlinkSync(join(secrets, "not-there.txt"), join(workspace.folder, "dangling"));
  symlinkSync("circle-b", join(workspace.folder, "circle-a"));
  symlinkSync("circle-a", join(workspace.folder, "circle-b"));
  return { ...workspace, secrets };
}

const paths: readonly (readonly [name: string, path: (secrets: string, folder: string) => string])[] = [
  ["an absolute path", (secrets) => join(secrets, "key.txt")],
  ["a path with ..", (secrets, folder) => `${"../".repeat(folder.split("/").length)}${secrets.slice(1)}/key.txt`],
  ["a path that goes down and up", (secrets, folder) => `sub/${"../".repeat(folder.split("/").length + 1)}${secrets.slice(1)}/key.txt`],
  ["a link to a file", () => "file-link"],
  ["a link to a folder", () => "folder-link/key.txt"],
  ["a link and ..", () => "folder-link/deep/../key.txt"],
  ["a link that leads nowhere", () => "dangling"],
  ["a circle of links", () => "circle-a"],
  ["the home folder", () => "~/.ssh/id_rsa"],
  ["the system's files", () => "/etc/passwd"],
  ["a device", () => "/dev/zero"],
  ["a file of the kernel's", () => "/proc/self/environ"],
  ["a NUL", () => "own.txt\0.png"],
  ["a name without end", () => "x/".repeat(3_000)],
];

describe("a path outside the workspace", () => {
  test.each(paths)("is neither read, searched, listed nor written, and the user is not asked: %s", async (_name, pathOf) => {
    const { secrets, folder, call, asked } = await besideSecrets();
    const path = pathOf(secrets, folder);
    const calls: readonly (readonly [string, object])[] = [
      ["view", { path }],
      ["grep", { pattern: "SECRET|root", path, output_mode: "content" }],
      ["glob", { pattern: "**/*", paths: [".", path] }],
      ["edit", { path, old_str: "SECRET", new_str: "x" }],
      ["create", { path, file_text: "x" }],
    ];
    for (const [name, args] of calls) {
      const result = await call(name, args);
      expect(result.resultType, name).toBe("failure");
      expect(result.textResultForLlm, name).not.toMatch(/SECRET|root:/);
    }
    expect(asked).toEqual([]);
    expect(readFileSync(join(secrets, "key.txt"), "utf8")).toBe("SECRET\n");
    expect(existsSync(join(secrets, "not-there.txt"))).toBe(false);
  });

  test("is not found by searches that reach a link to it", async () => {
    const { text } = await besideSecrets();
    expect(await text("grep", { pattern: "SECRET" })).toBe("No matches found.");
    expect(await text("glob", { pattern: "**/*" })).toBe("./own.txt\n./sub/a.txt");
  });

  test("is not created through a link to a folder outside", async () => {
    const { secrets, call } = await besideSecrets();
    expect((await call("create", { path: "folder-link/new.txt", file_text: "x" })).resultType).toBe("failure");
    expect((await call("create", { path: "folder-link/a/b/new.txt", file_text: "x" })).resultType).toBe("failure");
    expect(existsSync(join(secrets, "new.txt")) || existsSync(join(secrets, "a"))).toBe(false);
  });

  test("may begin with the name of the workspace", async () => {
    const { folder, call } = await openWorkspace({ "a.txt": "a" });
    mkdirSync(`${folder}-other`);
    onTestFinished(() => rmSync(`${folder}-other`, { recursive: true }));
    writeFileSync(`${folder}-other/b.txt`, "SECRET");
    expect((await call("view", { path: `${folder}-other/b.txt` })).resultType).toBe("failure");
    expect((await call("view", { path: "..foo" })).textResultForLlm).toMatch(/does not exist/);
  });
});

describe("a path that leads outside after the user was asked", () => {
  test("is refused if the file has become a link", async () => {
    const secrets = tempFolder({ "key.txt": "SECRET\n" });
    let swap = (): void => {};
    const { folder, call } = await openWorkspace({ "a.txt": "mine\n" }, {}, () => {
      swap();
      return { kind: "approve-once" };
    });
    swap = () => {
      rmSync(join(folder, "a.txt"));
      symlinkSync(join(secrets, "key.txt"), join(folder, "a.txt"));
    };
    for (const [name, args] of [
      ["view", { path: "a.txt" }],
      ["grep", { pattern: "SECRET", path: "a.txt", output_mode: "content" }],
      ["edit", { path: "a.txt", old_str: "SECRET", new_str: "x" }],
    ] as const) {
      rmSync(join(folder, "a.txt"));
      writeFileSync(join(folder, "a.txt"), "mine\n");
      const result = await call(name, args);
      expect([result.resultType, result.textResultForLlm.includes("SECRET")], name).toEqual(["failure", false]);
    }
    expect(readFileSync(join(secrets, "key.txt"), "utf8")).toBe("SECRET\n");
  });

  test("is refused if it leads to another file inside that was not permitted", async () => {
    let swap = (): void => {};
    const { folder, call } = await openWorkspace({ "a.txt": "old\n", "b.txt": "old\n" }, {}, () => {
      swap();
      return { kind: "approve-once" };
    });
    swap = () => {
      renameSync(join(folder, "a.txt"), join(folder, "c.txt"));
      symlinkSync("b.txt", join(folder, "a.txt"));
    };
    expect((await call("edit", { path: "a.txt", old_str: "old", new_str: "new" })).resultType).toBe("failure");
    expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("old\n");
  });
});

describe.skipIf(process.platform === "win32")("a special file", () => {
  test("is refused without waiting for it: a pipe and a socket", async () => {
    const { folder, call, text } = await openWorkspace({ "a.txt": "needle\n" });
    execFileSync("mkfifo", [join(folder, "pipe")]);
    const server = createServer().listen(join(folder, "socket"));
    onTestFinished(() => void server.close());
    for (const path of ["pipe", "socket"]) {
      expect(await text("view", { path }), path).toMatch(/is not a regular file and cannot be read\.$/);
      expect((await call("edit", { path, old_str: "a", new_str: "b" })).resultType, path).toBe("failure");
    }
    expect(await text("grep", { pattern: "needle" })).toBe("./a.txt");
  });
});

import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type * as Skillhost from "skillhost";
import { describe, expect, onTestFinished, test } from "vitest";
import { encloseProgramsOf } from "../../src/skills/isolation/enclosed-programs.ts";
import { patience } from "../slowness.ts";
import { hasSystemSandbox, openIsolated } from "./isolation-kit.ts";
import { putAll, skillMd, tempFolder } from "./kit.ts";

// Programs of command tools reach what their skill declares, and nothing else.
/** In no other file of this machine. */
const secret = `secret-${randomUUID()}`;
const run = (line: string): object => ({ command: "sh", args: ["-c", line] });
const tool = (name: string, handler: object): string =>
  JSON.stringify({ name, description: "For a test.", parameters: { type: "object", properties: {} }, handler });

/** A skill with a tool for each command, beside a secret and a server that counts its requests. */
async function openPrograms(
  commands: Readonly<Record<string, object>>,
  permissions: object | undefined,
  options: Skillhost.HostOptions = { isolation: "strict" },
) {
  let requests = 0;
  const server = createServer((_, response) => {
    requests++;
    response.end("SERVED");
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const root = tempFolder({ "secret.txt": secret, "shared/data.txt": "shared" });
  const folder = join(root, "skills/s");
  const tools = Object.entries(commands).map(([name, handler]) => [`tools/${name}.json`, tool(name, handler)] as const);
  putAll(folder, {
    "SKILL.md": skillMd("s"),
    "skill.json": JSON.stringify({ name: "s", version: "1.0.0", description: "A skill for the test.", permissions }),
    "own.txt": "own",
    "run.sh": '#!/bin/sh\nread line < ../../secret.txt; echo "ran $line"\n',
    address: `http://127.0.0.1:${port}/`,
    ...Object.fromEntries(tools),
  });
  symlinkSync("../../secret.txt", join(folder, "link.txt"));
  chmodSync(join(folder, "run.sh"), 0o755);
  const { host } = await openIsolated(join(root, "skills"), { workingDirectory: tempFolder(), ...options });
  expect(host.diagnostics.filter(({ severity }) => severity !== "info")).toEqual([]);
  const session = await host.createSession({ persist: false, permissions: { allow: ["*"] } });
  const call = async (name: string): Promise<string> => {
    const { text, error } = await session.callTool(name, {});
    return `${text}${error ?? ""}`;
  };
  return { root, folder, host, call, requests: () => requests };
}

const programs = ["sh", "cat", "ls", "ln", "node", "find", "unshare", "grep", "mount", "unlink", "setsid", "kill"];
const readAll = (path: string): string => `cat ${path}; while read l; do echo $l; done < ${path}`;
const root = "{baseDir}/../..";
const attempts: Readonly<Record<string, string>> = {
  "the absolute path": readAll(`${root}/secret.txt`),
  "a relative path": readAll("{baseDir}/../../secret.txt"),
  "a link in the skill": readAll("{baseDir}/link.txt"),
  "a link that it makes": `l=/tmp/l$$; ln -s ${root}/secret.txt $l; ${readAll("$l")}; unlink $l`,
  "a child program": `node -e "console.log(require('fs').readFileSync('${root}/secret.txt','utf8'))"`,
  "a child in a session of its own": `setsid sh -c 'cat ${root}/secret.txt'`,
  "a search of the file tree": `find ${root}/ -name "secret*" -exec cat {} +; grep -rsh "[s]${secret.slice(1)}" ${root}/ /tmp`,
  "the root of other processes": `for p in /proc/[0-9]*; do cat $p/root${root}/secret.txt; done`,
  "open files of other processes": "for f in /proc/[0-9]*/fd/*; do [ -f $f ] && cat $f; done",
  "the environment of other processes": "cat /proc/[0-9]*/environ | grep -a TOP_VARIABLE",
  "a new namespace": `unshare -Urm sh -c 'mount -t proc p /proc; cat /proc/1/root${root}/secret.txt'`,
};

describe.skipIf(!hasSystemSandbox)("programs of command tools in an isolated skill", () => {
  test.each(Object.entries(attempts))("do not reach an undeclared file through %s", { timeout: patience(60_000) }, async (how, line) => {
    process.env["TOP_VARIABLE"] = secret;
    onTestFinished(() => void delete process.env["TOP_VARIABLE"]);
    const enclosed = await openPrograms({ attempt: run(line) }, { programs });
    expect(await enclosed.call("attempt")).not.toContain(secret);
    // Without isolation the same attempt succeeds, where it does not depend on the processes of this machine.
    const open = await openPrograms({ attempt: run(line) }, { programs }, { isolation: "off" });
    if (!/processes|namespace/.test(how)) expect(await open.call("attempt")).toContain(secret);
  });

  test("have no network, not even this machine's", { timeout: patience(60_000) }, async () => {
    const fetches = run("node -e \"fetch(require('fs').readFileSync('{baseDir}/address','utf8')).then(r => r.text()).then(console.log)\"");
    const enclosed = await openPrograms({ fetches }, { programs, hosts: ["127.0.0.1"] });
    expect(await enclosed.call("fetches")).not.toContain("SERVED");
    expect(enclosed.requests()).toBe(0);
    const open = await openPrograms({ fetches }, { programs }, { isolation: "off" });
    expect(await open.call("fetches")).toContain("SERVED");
  });

  test("reach what the skill declares, and nothing of it for writing that is only readable", { timeout: patience(60_000) }, async () => {
    const permissions = { programs: ["sh", "cat", "./run.sh"], read: ["../../shared"], write: ["{workingDirectory}/out"] };
    const workingDirectory = tempFolder();
    const commands = {
      reads: run("cat ../shared/data.txt 2>/dev/null; cat {baseDir}/../../shared/data.txt {baseDir}/own.txt"),
      writes: run("echo new > out/new.txt; echo new > {baseDir}/own.txt; echo new > other.txt; echo done"),
      lists: run("ls"),
      script: { command: "./run.sh", args: [] },
      folders: run("echo $HOME; echo x > $TMPDIR/x && cat $TMPDIR/x"),
    };
    const { call, folder } = await openPrograms(commands, permissions, { isolation: "strict", workingDirectory });
    expect(await call("reads")).toBe("sharedown");
    expect(await call("writes")).toContain("done");
    expect(readFileSync(join(workingDirectory, "out/new.txt"), "utf8")).toBe("new\n");
    expect(readFileSync(join(folder, "own.txt"), "utf8")).toBe("own");
    expect(existsSync(join(workingDirectory, "other.txt"))).toBe(false);
    expect(await call("lists")).toMatch(/not found/);
    expect(await call("script")).toBe("ran \n");
    expect(await call("folders")).toBe("/tmp\nx\n");
  });

  test("keep their exit codes and output, and a program that does not exist is named", { timeout: patience(60_000) }, async () => {
    const { call } = await openPrograms({ fails: run("echo out; exit 7"), missing: { command: "no-such-program", args: [] } }, undefined);
    expect(await call("fails")).toContain("exited with code 7.\nout");
    expect(await call("missing")).toContain("Command no-such-program was not found");
  });

  test("are kept from what rules of the session deny, although the skill declares it", { timeout: patience(60_000) }, async () => {
    const { root, host, call } = await openPrograms(
      { reads: run("p=data; cat {baseDir}/../../shared/$p.txt; echo END") },
      {
        programs: ["sh", "cat"],
        read: ["../../shared"],
      },
    );
    expect(await call("reads")).toBe("sharedEND\n");
    const ruled = await host.createSession({ persist: false, permissions: { allow: ["*"], deny: [`read(${root}/shared/**)`] } });
    const { text } = await ruled.callTool("reads", {});
    expect(text).toContain("END");
    expect(text).not.toContain("shared");
    const writes = await openPrograms(
      { writes: run("k=kept; echo new > out/$k/x; echo new > out/y") },
      { programs: ["sh"], write: ["../out"] },
    );
    const out = join(writes.folder, "../out");
    putAll(out, { "kept/x": "old" });
    const kept = await writes.host.createSession({
      persist: false,
      workingDirectory: join(writes.folder, ".."),
      permissions: { allow: ["*"], deny: [`write(${out}/kept/**)`] },
    });
    await kept.callTool("writes", {});
    expect([readFileSync(join(out, "kept/x"), "utf8"), readFileSync(join(out, "y"), "utf8")]).toEqual(["old", "new\n"]);
  });
});

test("where the system does not enclose programs, strict refuses them, process runs them, and both are reported", async () => {
  const place = { folder: tempFolder(), workingDirectory: tempFolder() };
  const parts = { permissions: undefined, place, find: async () => ({ kind: "none", why: "there is none" }) as const };
  const program = { command: "sh", args: ["-c", "true"], env: {}, cwd: place.folder, folder: place.folder };
  const strict = encloseProgramsOf("strict", parts)!;
  await expect(strict.enclose(program)).rejects.toMatchObject({ code: "ISOLATION_NOT_ENFORCED" });
  expect(await strict.report("t.json")).toMatchObject([{ severity: "warning", code: "ISOLATION_NOT_ENFORCED", file: "t.json" }]);
  const weaker = encloseProgramsOf("process", parts)!;
  expect(await weaker.enclose(program)).toEqual({ command: "sh", args: ["-c", "true"], env: {} });
  expect(await weaker.report("t.json")).toMatchObject([{ severity: "warning", code: "ISOLATION_PARTLY", file: "t.json" }]);
  for (const tier of ["off", "worker"] as const) expect(encloseProgramsOf(tier, parts)).toBeUndefined();
});

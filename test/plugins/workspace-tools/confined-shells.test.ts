import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { findConfinement } from "../../../src/io/process/confine-process.ts";
import { openWorkspace } from "./workspace-kit.ts";

const confinement = await findConfinement();
const canConfine = confinement.kind === "enforced";

const secret = { "secret/key": "TOP\n", "src/a.ts": "TODO\n", "kept/x.txt": "old\n", ".env": "TOP\n" };
const run = (command: string): object => ({ command, description: "Tests" });

describe.skipIf(!canConfine)("confined commands", () => {
  const permissions = { allow: ["shell"], deny: ["read(secret/**)", "read(**/.env)", "write(kept/**)"] };

  test.each([
    "grep -rh TO .",
    "node -e \"const fs = require('fs'); for (const f of ['secret/key', '.env', 'src/a.ts']) try { console.log(fs.readFileSync(f, 'utf8')) } catch {}\"",
    "x=src/a.ts; y=ecret/key; cat $x s$y",
    "cat src/a.ts; for p in /proc/[0-9]*; do cat $p/cwd/s$PPID*/key $p/root/$PWD/secre?/key; done 2>/dev/null; cat /proc/self/cwd/secre?/key",
    "p=$PWD; mv $p ../moved; cat ../moved/src/a.ts ../moved/s$x*/key; umount ../moved/s$x*; cat ../moved/s$x*/key; mv ../moved $p",
    "unshare -Urm sh -c 'umount -l $PWD/sec*; cat sec*/key'; cat src/a.ts",
  ])("cannot read paths that rules deny, and can read all others: %s", async (command) => {
    const { text } = await openWorkspace(secret, { permissions });
    const output = await text("bash", run(command));
    expect(output).toContain("TODO");
    expect(output).not.toContain("TOP");
  });

  test("are denied if they certainly read a forbidden path", async () => {
    const { call } = await openWorkspace(secret, { permissions });
    for (const command of ["cat secret/key", "cat s*/key", "cat .e*", "echo x > kept/x.txt"]) {
      expect((await call("bash", run(command))).resultType, command).toBe("denied");
    }
  });

  test("cannot change paths that rules protect, and can change all others", async () => {
    const { text, folder } = await openWorkspace(secret, { permissions });
    await text(
      "bash",
      run(
        "k=kep; for f in ${k}t/x.txt src/a.ts; do node -e \"require('fs').writeFileSync('$f', 'new')\"; done; mv ${k}t old; rm -rf ${k}t",
      ),
    );
    expect(readFileSync(join(folder, "kept/x.txt"), "utf8")).toBe("old\n");
    expect(readFileSync(join(folder, "src/a.ts"), "utf8")).toBe("new");
  });

  test("stay confined in shells that stay open, whatever input they receive later", async () => {
    const { text, call } = await openWorkspace(secret, { permissions });
    await call("bash", { ...run("bash"), mode: "async", shellId: "open" });
    expect(await text("write_bash", { shellId: "open", input: "x=s; cat src/a.ts ${x}ecret/key; echo END", delay: 5 })).not.toContain(
      "TOP",
    );
    expect((await call("write_bash", { shellId: "open", input: "cat secret/key", delay: 0 })).resultType).toBe("denied");
    await call("stop_bash", { shellId: "open" });
  });

  test("end with their child processes and return their exit codes", async () => {
    const { text, call, folder } = await openWorkspace(secret, { permissions });
    expect(await text("bash", run("exit 7"))).toContain("exited with exit code 7");
    await call("bash", { ...run("(sleep 60; touch late) & echo $BASHPID > pid; sleep 60"), mode: "async", shellId: "long" });
    await expect.poll(() => existsSync(join(folder, "pid"))).toBe(true);
    const pid = Number(readFileSync(join(folder, "pid"), "utf8"));
    await call("stop_bash", { shellId: "long" });
    await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
  });

  test("that run without the question that a rule requires show nothing of the path; after it, they may", async () => {
    const { text, asked } = await openWorkspace(secret, { permissions: { allow: ["shell"], ask: ["read(secret/**)"] } });
    expect(await text("bash", run("x=s; cat ${x}ecret/key src/a.ts"))).not.toContain("TOP");
    expect(asked).toEqual([]);
    expect(await text("bash", run("cat secret/key"))).toContain("TOP");
    expect(asked).toHaveLength(1);
  });

  test("have no network, and say so, if rules for addresses cannot know where they connect to", async () => {
    const server = createServer((_, response) => response.end("TOP")).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    const { text } = await openWorkspace(secret, { permissions: { allow: ["shell"], deny: ["url(evil.example)"] } });
    const fetches = `node -e "fetch('http://127.0.0.1:${port}').then(r => r.text()).then(console.log)"`;
    expect(await text("bash", run(fetches))).toMatch(/had no network access: rules for addresses apply/);
    const without = await openWorkspace(secret, { permissions: { allow: ["shell"] } });
    expect(await without.text("bash", run(fetches))).toContain("TOP");
  });

  test("include the runs of tests", async () => {
    const files = { ...secret, "package.json": JSON.stringify({ scripts: { test: "cat src/a.ts secret/key" } }) };
    const { text } = await openWorkspace(files, { permissions }, undefined, { presentation: "editor" });
    const output = await text("run_tests", {});
    expect(output).toContain("TODO");
    expect(output).not.toContain("TOP\n");
  });
});

test("if the machine cannot enforce limits, a command that may read a forbidden path is denied", async () => {
  const permissions = { allow: ["shell"], deny: ["read(secret/**)"] };
  const { call } = await openWorkspace(secret, { permissions }, undefined, { confinement: "off" });
  for (const command of ["node -e 1", "x=s; cat ${x}ecret/key", "grep -r TO .", "npm test"]) {
    expect((await call("bash", run(command))).resultType, command).toBe("denied");
  }
  for (const command of ["ls", "cat src/a.ts", "grep -r TO src", "git status"]) {
    expect((await call("bash", run(command))).resultType, command).toBe("success");
  }
});

test("commands are confined only if rules require it", async () => {
  const { text } = await openWorkspace({ ...secret }, { permissions: { allow: ["shell"], deny: ["write_bash"] } });
  expect(await text("bash", run("cat secret/key; cat /proc/$PPID/comm"))).toMatch(/TOP\n(?!bwrap)/);
});

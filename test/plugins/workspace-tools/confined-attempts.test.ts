import { chmodSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { findConfinement } from "../../../src/io/process/confine-process.ts";
import { openWorkspace, type Workspace } from "./workspace-kit.ts";

// What the shell tool, and all that its commands start, may not reach under rules: each attempt reaches it where there are no rules.
const canConfine = (await findConfinement()).kind === "enforced";

const files = {
  "secret/key": "TOP\n",
  "secret/deep/er/key": "TOP\n",
  ".env": "TOP\n",
  "src/a.ts": "TODO\n",
  "kept/x.txt": "old\n",
  "package.json": '{ "type": "commonjs" }\n',
  "read.cjs": "console.log(require('node:fs').readFileSync(['sec', 'ret', '/key'].join(''), 'utf8'))",
  "fetch.cjs": "require('node:http').get(process.argv[2], (r) => r.pipe(process.stdout)).on('error', console.log)",
  "reach.sh": '#!/bin/sh\nexec node -e "fetch(process.argv[1]).then(() => 0, () => 0)" "$(cat address)"\n',
};
const rules = { allow: ["shell"], deny: ["read(secret/**)", "read(**/.env)", "write(kept/**)", "url(127.0.0.1)", "url(evil.example)"] };

/** A project with links to what is protected, and a server on this machine that counts its requests. */
async function openAttempts(permissions: { readonly allow: readonly string[]; readonly deny?: readonly string[] }) {
  let requests = 0;
  const server = createServer((_, response) => {
    requests++;
    response.end("SERVED");
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const workspace = await openWorkspace({ ...files, address: `http://127.0.0.1:${port}/` }, { permissions });
  symlinkSync("secret", join(workspace.folder, "link"));
  symlinkSync("../secret/key", join(workspace.folder, "src/linked"));
  symlinkSync(join(workspace.folder, "secret/deep"), join(workspace.folder, "src/deep"));
  symlinkSync("kept", join(workspace.folder, "kept-link"));
  chmodSync(join(workspace.folder, "reach.sh"), 0o755);
  return { workspace, port, requests: () => requests };
}

/** The text of a command's result; a denied one is an outcome as well. */
async function attempt({ call }: Workspace, command: string): Promise<string> {
  const { textResultForLlm } = await call("bash", { command, description: "Tests", initial_wait: 60 });
  return textResultForLlm;
}

const reads: readonly (readonly [how: string, command: string])[] = [
  ["a program that computes the path", "node read.cjs"],
  ["a variable", "s=secret; cat $s/key"],
  ["a link to the folder", "l=link; cat $l/key"],
  ["a link to the file", "f=linked; cat src/$f"],
  ["a link that leads through a folder", "d=deep; cat src/$d/er/key"],
  ["a link that the command makes", "ln -s sec* made && m=made && cat $m/key"],
  ["a child program in the background", "(node read.cjs > out 2>&1 &) ; sleep 1; cat out"],
  ["a child that has left its session", "setsid node read.cjs; nohup node read.cjs; true"],
  ["xargs", "echo secret/key | xargs cat"],
  ["find", "find . -name key -exec cat {} +"],
  ["an archive", "tar cf - . | tar xOf - ./secret/key"],
  ["a copy of the parent folder", "cp -r . ../copy-$$; cat ../copy-$$/secret/key; rm -rf ../copy-$$"],
  ["the working directory in /proc", "p=/proc/self/cwd; cat $p/secret/key"],
  ["the root in /proc", 'r=/proc/self/root; cat "$r$PWD/secret/key"'],
  ["the root of another process", 'for p in /proc/[0-9]*; do cat "$p/root$PWD/secret/key" "$p/cwd/secret/key"; done 2>/dev/null'],
  [
    "open files of other processes",
    "for f in /proc/[0-9]*/fd/*; do case $(readlink $f) in *secret*) cat $f;; esac; done 2>/dev/null; node read.cjs",
  ],
  ["a new mount namespace", "unshare -Urm sh -c 'umount -R secret; mount -t tmpfs none src; node read.cjs'"],
  ["a folder mounted elsewhere", "unshare -Urm sh -c 'mkdir -p m; mount --rbind . m; cat m/secret/key'"],
  ["python", "python3 -c \"print(open('sec' + 'ret/key').read())\""],
  ["a file by pattern", "cat .e[n]v $(ls -d .e*)"],
];

const connections: readonly (readonly [how: string, command: string])[] = [
  ["a program with the address in a file", "node fetch.cjs $(cat address)"],
  ["a script", "./reach.sh"],
  [
    "the shell itself",
    "h=127.0.0.1; p=$(tr -dc 0-9: < address | cut -d: -f3); exec 3<>/dev/tcp/$h/$p; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3",
  ],
  ["a child in the background", "(node fetch.cjs $(cat address) > out 2>&1 &); sleep 1; cat out"],
  ["python", "python3 -c \"import urllib.request as u; print(u.urlopen(open('address').read()).read())\""],
  ["a monitor that git starts", "git init -q . && git config core.fsmonitor $PWD/reach.sh && git status"],
  ["a monitor that git starts, with nothing but git in the line", "git status"],
  [
    "another network namespace",
    "unshare -Urn node fetch.cjs $(cat address); nsenter --net=/proc/$PPID/ns/net node fetch.cjs $(cat address); node fetch.cjs $(cat address)",
  ],
];

const writes: readonly (readonly [how: string, command: string])[] = [
  ["a program", "node -e \"require('fs').writeFileSync(['kep', 't/x.txt'].join(''), 'new')\""],
  ["a link to the folder", "l=kept-link; echo new > $l/x.txt"],
  ["a move", "k=kept; mv $k gone; mkdir kept; echo new > kept/x.txt"],
  ["sed", "sed -i s/old/new/ $(echo kept/x.txt)"],
  ["a hard link", "k=kept; ln $k/x.txt hard; echo new > hard"],
  ["/proc", 'r=/proc/self/root; echo new > "$r$PWD/kept/x.txt"'],
  ["a new mount namespace", "unshare -Urm sh -c 'mount -o remount,rw kept; umount kept; echo new > kept/x.txt'"],
];

/** A repository whose configuration names a program: it may have been there before. */
async function withMonitor(workspace: Workspace): Promise<void> {
  const { spawnSync } = await import("node:child_process");
  const git = (...args: readonly string[]): unknown => spawnSync("git", args, { cwd: workspace.folder });
  git("init", "-q", ".");
  git("config", "core.fsmonitor", join(workspace.folder, "reach.sh"));
}

describe.skipIf(!canConfine)("attempts of commands against rules", () => {
  test.each(reads)("a protected file is not read through %s", async (_how, command) => {
    const { workspace } = await openAttempts(rules);
    expect(await attempt(workspace, command)).not.toContain("TOP");
    expect(readFileSync(join(workspace.folder, "secret/key"), "utf8")).toBe("TOP\n");
  });

  test.each(connections)("a denied host is not reached through %s", async (_how, command) => {
    const { workspace, requests } = await openAttempts(rules);
    if (command === "git status") await withMonitor(workspace);
    expect(await attempt(workspace, command)).not.toContain("SERVED");
    expect(requests()).toBe(0);
  });

  test.each(writes)("a protected file is not changed through %s", async (_how, command) => {
    const { workspace } = await openAttempts(rules);
    await attempt(workspace, command);
    expect(readFileSync(join(workspace.folder, "kept/x.txt"), "utf8")).toBe("old\n");
  });

  test("without rules, the same attempts reach what they are about", async () => {
    const failed: string[] = [];
    for (const [how, command] of reads) {
      const { workspace } = await openAttempts({ allow: ["shell"] });
      if (!(await attempt(workspace, command)).includes("TOP")) failed.push(`read: ${how}`);
    }
    for (const [how, command] of connections) {
      const { workspace, requests } = await openAttempts({ allow: ["shell"] });
      if (command === "git status") await withMonitor(workspace);
      await attempt(workspace, command);
      if (requests() === 0) failed.push(`connection: ${how}`);
    }
    for (const [how, command] of writes) {
      const { workspace } = await openAttempts({ allow: ["shell"] });
      await attempt(workspace, command);
      const file = join(workspace.folder, "kept/x.txt");
      if (existsSync(file) && readFileSync(file, "utf8") === "old\n") failed.push(`write: ${how}`);
    }
    expect(failed).toEqual([]);
  });
});

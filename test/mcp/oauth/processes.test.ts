import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { compileSources } from "../../compiled-sources.ts";
import { call, oauthKit } from "./oauth-kit.ts";

const program = "test/mcp/oauth/renewing-child.ts";
const compiled = compileSources(program);

test("processes that renew at the same time use each refresh token once, and all continue", async () => {
  const kit = await oauthKit();
  await call(kit.open(), kit.server.url);
  const children = [1, 2, 3].map(() => start(kit.server.url, kit.directory));
  await Promise.all(children.map(({ process }) => once(process.stdout!, "readable")));
  kit.authorization.endAccessTokens();
  for (const { process } of children) process.stdin!.write("now\n");
  for (const { output, errors } of children) {
    expect(await output, await errors).toBe('ready\n[{"type":"text","text":"did read"}]');
  }
  // One for the sign-in, one for all three: a second use of the refresh token would have taken everything back.
  expect(kit.authorization.count("/token")).toBe(2);
  expect(await call(kit.open({ authorize: undefined }), kit.server.url)).toBe("did read");
  expect(kit.files()).toHaveLength(1);
});

test("a process that was killed while it renewed does not block others", async () => {
  const kit = await oauthKit();
  await call(kit.open(), kit.server.url);
  const renewing = kit.authorization.hold("/token");
  const { process: child } = start(kit.server.url, kit.directory);
  await once(child.stdout!, "readable");
  kit.authorization.endAccessTokens();
  child.stdin!.write("now\n");
  await renewing.arrived;
  child.kill("SIGKILL");
  await once(child, "close");
  renewing.release();
  expect(await call(kit.open({ authorize: undefined }), kit.server.url)).toBe("did read");
  expect(kit.files()).toHaveLength(1);
});

interface Renewing {
  readonly process: ChildProcess;
  readonly output: Promise<string>;
  readonly errors: Promise<string>;
}

function start(url: string, directory: string): Renewing {
  const child = spawn(process.execPath, [compiled(program), url, directory], { stdio: ["pipe", "pipe", "pipe"] });
  return { process: child, output: text(child.stdout), errors: text(child.stderr) };
}

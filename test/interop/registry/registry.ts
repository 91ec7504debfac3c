import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPeer } from "../install-peer.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

/** A real registry on loopback with its own storage, and the environment that makes npm use no other. */
export interface Registry extends AsyncDisposable {
  readonly url: string;
  /** A folder for the test, removed with the registry. */
  readonly scratch: string;
  /** The environment of commands: the registry, a token for it, and their own cache and home. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts verdaccio, installed from the lock file in this folder if it is missing. It has no upstream registry. */
export async function startRegistry(): Promise<Registry> {
  const bin = installPeer(here, "node_modules/verdaccio/bin/verdaccio");
  const scratch = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-registry-")));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  writeFileSync(join(scratch, "config.yaml"), configuration(scratch));
  const child = spawn(process.execPath, [bin, "--config", join(scratch, "config.yaml"), "--listen", `127.0.0.1:${port}`], {
    cwd: scratch,
    stdio: ["ignore", "pipe", "pipe"],
  });
  try {
    await answers(url, child);
    const token = await signUp(url);
    const env = environment(scratch, url, token);
    return { url, scratch, env, [Symbol.asyncDispose]: () => end(child, scratch) };
  } catch (error) {
    await end(child, scratch);
    throw error;
  }
}

function configuration(scratch: string): string {
  const everybody = "{ access: $all, publish: $authenticated, unpublish: $authenticated }";
  return `storage: ${scratch}/storage
auth: { htpasswd: { file: ${scratch}/htpasswd, algorithm: bcrypt, rounds: 1 } }
uplinks: {}
packages: { "@*/*": ${everybody}, "**": ${everybody} }
log: { type: stdout, format: json, level: error }
max_body_size: 100mb
web: { enable: false }
`;
}

function environment(scratch: string, url: string, token: string): Record<string, string> {
  const home = join(scratch, "home");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, ".npmrc"), `registry=${url}\n${url.replace(/^http:/, "")}:_authToken=\${REGISTRY_TOKEN}\n`);
  return {
    REGISTRY_TOKEN: token,
    npm_config_userconfig: join(home, ".npmrc"),
    npm_config_globalconfig: join(home, "npmrc-of-the-machine"),
    npm_config_cache: join(scratch, "npm-cache"),
    npm_config_fetch_retries: "0",
    SKILLHOST_HOME: join(home, ".skillhost"),
  };
}

async function signUp(url: string): Promise<string> {
  const user = { name: "tester", password: "not-a-secret", type: "user", roles: [], date: new Date().toISOString() };
  const answer = await fetch(`${url}-/user/org.couchdb.user:tester`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(user),
  });
  const { token } = (await answer.json()) as { token?: string };
  if (token === undefined) throw new Error(`The registry gave no token: ${answer.status}.`);
  return token;
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const deadline = Date.now() + 60_000;
  while (child.exitCode === null && Date.now() < deadline) {
    const isUp = await fetch(`${url}-/ping`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`The registry did not start.\n${output}`);
}

async function end(child: ChildProcess, scratch: string): Promise<void> {
  if (child.exitCode === null) {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }
  rmSync(scratch, { recursive: true, force: true });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

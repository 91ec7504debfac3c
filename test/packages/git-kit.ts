import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach } from "vitest";
import { place } from "./project-kit.ts";

/** Why tests with git cannot run here; undefined when they can. */
export const noGit: string | undefined =
  spawnSync("git", ["http-backend"], { stdio: "ignore" }).error === undefined ? undefined : "git is not installed";

/** Sets the home folder of git, in which tests may write a `.gitconfig`. */
export function useGitHome(): void {
  let before: string | undefined;
  beforeEach(() => {
    before = process.env["HOME"];
    process.env["HOME"] = place.at("git-home");
    mkdirSync(place.at("git-home"));
  });
  afterEach(() => {
    if (before === undefined) delete process.env["HOME"];
    else process.env["HOME"] = before;
  });
}

type Files = Readonly<Record<string, string>>;

/** A repository with a working tree, made by the git of this machine. */
export class TestRepository {
  readonly folder: string;

  constructor(name: string, files: Files = {}) {
    this.folder = place.at(`repositories/${name}.git`);
    mkdirSync(this.folder, { recursive: true });
    this.git("init", "--quiet", "--initial-branch=main");
    if (Object.keys(files).length > 0) this.commit(files);
  }

  /** Its `file:` address. */
  get url(): string {
    return pathToFileURL(this.folder).href;
  }

  get head(): string {
    return this.git("rev-parse", "HEAD").trim();
  }

  git(...args: readonly string[]): string {
    return this.gitWith("", ...args);
  }

  gitWith(input: string | Buffer, ...args: readonly string[]): string {
    const who = { GIT_AUTHOR_NAME: "A", GIT_AUTHOR_EMAIL: "a@example.com", GIT_COMMITTER_NAME: "A", GIT_COMMITTER_EMAIL: "a@example.com" };
    const env = { PATH: process.env["PATH"], HOME: place.at("nowhere"), GIT_CONFIG_NOSYSTEM: "1", ...who };
    return execFileSync("git", ["-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", ...args], {
      cwd: this.folder,
      input,
      encoding: "utf8",
      env,
    });
  }

  /** Commits files; returns the id of the commit. */
  commit(files: Files, removed: readonly string[] = []): string {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true });
      writeFileSync(join(this.folder, path), text);
    }
    for (const path of removed) rmSync(join(this.folder, path), { recursive: true });
    this.git("add", "--all");
    return this.commitIndex();
  }

  /** Adds an entry that no file of the working tree has. `mode`: 120000 for a link, 160000 for a submodule. */
  addEntry(mode: string, path: string, content: string): void {
    const id = mode === "160000" ? content : this.gitWith(content, "hash-object", "-w", "--stdin").trim();
    this.gitWith(`${mode} ${id}\t${path}\0`, "update-index", "-z", "--add", "--index-info");
  }

  commitIndex(): string {
    this.git("commit", "--quiet", "--message=Change");
    return this.head;
  }
}

export interface GitServer extends AsyncDisposable {
  readonly origin: string;
}

/** Serves the test's repositories over HTTP, with git's own CGI program. */
export async function serveRepositories(): Promise<GitServer> {
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url!, "http://localhost");
    const { headers } = request;
    const backend = spawn("git", ["-c", "safe.directory=*", "http-backend"], {
      stdio: ["pipe", "pipe", "ignore"],
      env: {
        PATH: process.env["PATH"],
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_PROJECT_ROOT: place.at("repositories"),
        GIT_HTTP_EXPORT_ALL: "1",
        REQUEST_METHOD: request.method,
        PATH_INFO: decodeURIComponent(pathname),
        QUERY_STRING: search.slice(1),
        CONTENT_TYPE: headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(headers["git-protocol"] ?? ""),
      },
    });
    request.pipe(backend.stdin);
    backend.stdin.on("error", () => {});
    let head: Buffer | undefined = Buffer.alloc(0);
    backend.stdout.on("data", (chunk: Buffer) => {
      if (head === undefined) return void response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end === -1) return;
      for (const line of head.toString("latin1", 0, end).split("\r\n")) {
        const [name, value] = line.split(": ");
        if (name === "Status") response.statusCode = Number.parseInt(value!, 10);
        else response.setHeader(name!, value!);
      }
      response.write(head.subarray(end + 4));
      head = undefined;
    });
    backend.stdout.on("end", () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

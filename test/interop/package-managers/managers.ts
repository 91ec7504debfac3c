import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

const windows = process.platform === "win32";

/** One way to install skillhost from its tarball. */
export interface PackageManager {
  readonly name: string;
  /** The npm package of the manager, in a version that runs on Node 20.19. Absent for npm itself. */
  readonly package?: string;
  /** True when programs in the folder can import the installed package. */
  readonly isLocal: boolean;
  /** Installs the tarball and returns the folder of the command. */
  install(place: InstallPlace): string;
}

export interface InstallPlace {
  /** The user's working directory. */
  readonly folder: string;
  /** The folder for stores and caches. */
  readonly scratch: string;
  readonly tarball: string;
  /** The folder of the manager's own command. */
  readonly bin: string;
}

/** Package managers for Node, each with its own cache. */
export const managers: readonly PackageManager[] = [
  {
    name: "npm -g",
    isLocal: false,
    install({ folder, scratch, tarball }) {
      const prefix = join(scratch, "prefix");
      run("npm", ["install", "--global", "--prefix", prefix, "--no-audit", "--no-fund", tarball], { folder });
      return windows ? prefix : join(prefix, "bin");
    },
  },
  {
    name: "npm",
    isLocal: true,
    install({ folder, tarball }) {
      run("npm", ["install", "--no-audit", "--no-fund", tarball], { folder });
      return join(folder, "node_modules/.bin");
    },
  },
  {
    name: "pnpm",
    package: "pnpm@10.34.8",
    isLocal: true,
    install({ folder, scratch, tarball, bin }) {
      run("pnpm", ["add", "--store-dir", join(scratch, "store"), tarball], { folder, bin });
      return join(folder, "node_modules/.bin");
    },
  },
  {
    name: "Yarn 1",
    package: "yarn@1.22.22",
    isLocal: true,
    install({ folder, scratch, tarball, bin }) {
      run("yarn", ["add", "--non-interactive", "--cache-folder", join(scratch, "cache"), `file:${tarball}`], { folder, bin });
      return join(folder, "node_modules/.bin");
    },
  },
  {
    name: "Yarn 4",
    package: "@yarnpkg/cli-dist@4.18.1",
    isLocal: true,
    install({ folder, scratch, tarball, bin }) {
      // Without this file Yarn treats the folder as part of a project above it.
      writeFileSync(join(folder, "yarn.lock"), "");
      writeFileSync(join(folder, "package.json"), '{ "name": "project", "private": true }\n');
      const settings = { nodeLinker: "node-modules", globalFolder: join(scratch, "yarn"), enableTelemetry: false };
      writeFileSync(
        join(folder, ".yarnrc.yml"),
        Object.entries(settings)
          .map(([key, value]) => `${key}: ${value}\n`)
          .join(""),
      );
      run("yarn", ["add", `skillhost@file:${tarball}`], { folder, bin });
      return join(folder, "node_modules/.bin");
    },
  },
  {
    name: "Bun",
    package: "bun@1.4.5",
    isLocal: true,
    install({ folder, scratch, tarball, bin }) {
      run("bun", ["add", tarball], { folder, bin, env: { BUN_INSTALL_CACHE_DIR: join(scratch, "bun") } });
      return join(folder, "node_modules/.bin");
    },
  },
];

/** Installs a package manager from npm into a folder. Returns undefined when npm cannot, such as without a network. */
export function installManager({ package: wanted }: PackageManager, scratch: string): string | undefined {
  if (wanted === undefined) return "";
  const folder = join(scratch, "manager");
  mkdirSync(folder);
  try {
    run("npm", ["install", "--no-save", "--prefix", folder, "--no-audit", "--no-fund", wanted], { folder });
    return join(folder, "node_modules/.bin");
  } catch {
    return undefined;
  }
}

interface RunOptions {
  readonly folder: string;
  readonly bin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

function run(command: string, args: readonly string[], { folder, bin, env = {} }: RunOptions): string {
  const path = [...(bin ? [bin] : []), process.env["PATH"] ?? ""].join(delimiter);
  return execFileSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    shell: windows,
    stdio: "pipe",
    env: { ...process.env, ...env, PATH: path, TMPDIR: dirname(folder) },
  });
}

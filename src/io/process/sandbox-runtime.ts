import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { shellQuoted } from "../../base/text.ts";

/** A program to enclose, and all that it reaches besides the libraries of the system. Paths are absolute. */
export interface EnclosedProgram {
  readonly command: readonly string[];
  /** Its whole environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  /** A folder whose local sockets it may connect to. */
  readonly sockets?: string | undefined;
}

/** Encloses programs by means of the operating system that this package has no code for. */
export interface SandboxRuntime {
  /** `sandbox-runtime 0.0.78`. */
  readonly by: string;
  /** The command that runs the program in its enclosure. */
  enclose(program: EnclosedProgram): Promise<{ readonly command: string; readonly args: readonly string[] }>;
}

type Runtime = typeof import("@anthropic-ai/sandbox-runtime");

const packageName = "@anthropic-ai/sandbox-runtime";

/**
 * Opens `@anthropic-ai/sandbox-runtime`, an optional package, if it is installed beside this one. A trial run must reach no file, no address and
 * no process that it should not: what encloses programs differs between systems, and none is believed. A string is the reason that it
 * cannot be used. `system`: what programs need of the system to start.
 */
export async function openSandboxRuntime(system: readonly string[]): Promise<SandboxRuntime | string> {
  // There it needs a user account that an administrator creates, and knows no limits for a single program.
  if (process.platform === "win32") return `${packageName} does not enclose single programs on Windows`;
  let runtime: Runtime;
  try {
    runtime = await import("@anthropic-ai/sandbox-runtime");
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND";
    return isMissing ? `${packageName} is not installed` : `${packageName} cannot be loaded: ${errorMessage(error)}`;
  }
  const { SandboxManager: manager } = runtime;
  // It has one configuration in a process, and the network of that one would be open to skills, too.
  if (manager.getConfig() !== undefined) return `the application uses ${packageName} by itself`;
  try {
    await manager.initialize(configurationOf({ readable: [], writable: [] }, system));
    // Some of the configuration counts only if it is that of the process, so programs are enclosed one after the other.
    let last: Promise<unknown> = Promise.resolve();
    const found: SandboxRuntime = {
      by: `sandbox-runtime ${versionOf()}`.trim(),
      enclose(program) {
        const configuration = configurationOf(program, system);
        const enclosed = last.then(async () => {
          manager.updateConfig(configuration);
          const [command, ...args] = (await manager.wrapWithSandboxArgv(commandLine(program), shell())).argv;
          return { command: command!, args };
        });
        last = enclosed.catch(() => {});
        return enclosed;
      },
    };
    const reached = await probe(found);
    return reached.length === 0 ? found : `${packageName} does not limit ${reached.join(", ")} here`;
  } catch (error) {
    const { stderr } = error as { stderr?: unknown };
    const said = typeof stderr === "string" && stderr.trim() !== "" ? stderr.trim() : errorMessage(error);
    return `${packageName} does not work here: ${said.slice(-500)}`;
  }
}

const env = "/usr/bin/env";

/** The runtime shows a program no names that are links, such as sh of most distributions. That of macOS starts another one. */
function shell(): string {
  return process.platform === "darwin" ? "/bin/bash" : realpathSync.native("/bin/sh");
}

/** What programs of macOS need to start: libraries of the system, and those of Homebrew, whose Node.js has its own there. */
const macFolders = ["/System", "/Library/Apple", "/private/var/db/dyld", "/private/etc/ssl", "/opt/homebrew", "/usr/local"];

/** These stay readable in Linux unless they are named. */
const linuxFolders = ["/sys", "/proc/sys"];

function configurationOf(
  { readable, writable, sockets }: Pick<EnclosedProgram, "readable" | "writable" | "sockets">,
  system: readonly string[],
) {
  const common = [...system, ...(process.platform === "darwin" ? macFolders : []), "/dev", shell(), env, process.execPath, ...ownFolder()];
  const shown = [...common, ...readable, ...writable].filter((path) => existsSync(path)).map((path) => realpathSync.native(path));
  return {
    network: {
      allowedDomains: [],
      deniedDomains: [],
      // Linux does not distinguish local sockets by their paths. Those that are not readable are out of reach by their folders.
      ...(sockets !== undefined && (process.platform === "linux" ? { allowAllUnixSockets: true } : { allowUnixSockets: [sockets] })),
    },
    filesystem: {
      denyRead: ["/", ...(process.platform === "linux" ? linuxFolders : [])],
      allowRead: [...new Set(shown)],
      allowWrite: [...writable],
      denyWrite: [],
    },
  };
}

/** The environment is replaced in the enclosure, because the runtime adds variables of its own. */
function commandLine({ command, environment }: EnclosedProgram): string {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return `exec ${[env, "-i", ...variables, ...command].map(shellQuoted).join(" ")}`;
}

/** Where its helpers lie, which run in the enclosure. */
function ownFolder(): readonly string[] {
  try {
    return [dirname(createRequire(import.meta.url).resolve(`${packageName}/package.json`))];
  } catch {
    // The trial run says whether it works without.
    return [];
  }
}

function versionOf(): string {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(ownFolder()[0] ?? "", "package.json"), "utf8"));
    return isRecord(manifest) && typeof manifest["version"] === "string" ? manifest["version"].slice(0, 50) : "";
  } catch {
    // Only the version is missing in what people read.
    return "";
  }
}

const attempts = `
const [file, port, pid] = process.argv.slice(1);
const reaches = (attempt) => { try { attempt(); return true; } catch { return false; } };
const found = { files: reaches(() => require("node:fs").readFileSync(file)), signals: reaches(() => process.kill(Number(pid), 0)) };
const end = (network) => { console.log(JSON.stringify({ ...found, network })); process.exit(); };
require("node:net").connect(Number(port), "127.0.0.1").on("connect", () => end(true)).on("error", () => end(false));
`;

/** What a program reaches that is allowed nothing. */
async function probe(runtime: SandboxRuntime): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-probe-"));
  const server = createServer((socket) => socket.destroy());
  try {
    const file = join(folder, "file.txt");
    writeFileSync(file, "file");
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const command = [process.execPath, "-e", attempts, file, String(port), String(process.pid)];
    const enclosed = await runtime.enclose({ command, environment: {}, readable: [], writable: [] });
    const { stdout } = await promisify(execFile)(enclosed.command, [...enclosed.args], { timeout: 20_000, env: {} });
    const reached: unknown = JSON.parse(stdout);
    return Object.entries(isRecord(reached) ? reached : { everything: true }).flatMap(([what, isReached]) =>
      isReached === false ? [] : [what],
    );
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Logger } from "../../../base/logger.ts";
import { statFile } from "../../../io/module-loader/read-source.ts";
import { minimalEnvironment } from "../../../io/process/child-environment.ts";
import { type ManagedProcess, type ProcessExit, spawnProcess } from "../../../io/process/child-process.ts";
import { StderrTail } from "../../../io/process/stderr-tail.ts";
import type { Client } from "../clients/client.ts";
import type { WireStreams } from "../connection/wire.ts";
import type { CopilotServerOptions } from "../copilot-options.ts";

/** An extension: a folder with a program, `extension.mjs`, that attaches to a session. */
export interface FoundExtension {
  /** `project:<name>` or `user:<name>`. */
  readonly id: string;
  /** The name of its folder. */
  readonly name: string;
  readonly source: "project" | "user";
  readonly file: string;
}

/** The part of the server that extensions need. As an interface, since the server's context imports the sessions. */
export interface ExtensionHost {
  readonly options: CopilotServerOptions;
  readonly log: Logger;
  /** Whether code in a folder may run. */
  mayRun(path: string): Promise<boolean>;
  accept(streams: WireStreams): Client;
}

interface LaunchOptions {
  readonly server: ExtensionHost;
  readonly sessionId: string;
  readonly workingDirectory: string;
  /** The folder of the SDK that a client chose for its extensions. */
  readonly sdkPath: string | undefined;
  /** The extension has joined its session. */
  onJoined(): void;
  /** The program or its connection has ended, without having been stopped. `why` is text for users. */
  onFailed(why: string): void;
}

/** A running extension. */
export interface ExtensionProcess {
  readonly pid: number;
  stop(): Promise<void>;
}

const joinMs = 30_000;
const endingMs = 1_000;

/** Starts an extension as a client that is connected over its standard streams. Returns the reason as a text if this fails. */
export async function launchExtension({ id, file }: FoundExtension, options: LaunchOptions): Promise<ExtensionProcess | string> {
  const { server, sessionId, workingDirectory, sdkPath } = options;
  const trusted = (await server.mayRun(workingDirectory)) ? workingDirectory : undefined;
  const sdk = findSdk([sdkPath, server.options.environment["COPILOT_SDK_PATH"]], file, trusted);
  if (sdk === undefined) {
    return "the Copilot SDK was not found. Install @github/copilot-sdk in the project, or set its folder with extensionSdkPath";
  }
  const environment = minimalEnvironment({
    SESSION_ID: sessionId,
    COPILOT_SDK_PATH: sdk,
    COPILOT_EXTENSION_PARENT_PID: String(process.pid),
  });
  const args = [...nodeArguments(sdk), file];
  const started = await spawnProcess({ command: process.execPath, args, cwd: workingDirectory, environment });
  return started.kind === "spawned" ? attach(id, started.process, options) : started.message;
}

function attach(id: string, process: ManagedProcess, { server, sessionId, onJoined, onFailed }: LaunchOptions): ExtensionProcess {
  const stderr = new StderrTail();
  let isOver = false;
  process.stderr.on("data", (chunk: Buffer) => {
    stderr.add(chunk);
    server.log.debug("An extension wrote to stderr.", { extension: id, text: chunk.toString("utf8").slice(0, 2_000) });
  });
  // A program that has ended does not need the rest of its input.
  process.stdin.on("error", () => {});
  const client = server.accept({ input: process.stdout, output: outputOf(process) });
  const fail = (why: string): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(late);
    client.wire.close();
    void process.stop();
    onFailed(why);
  };
  const late = setTimeout(() => fail(`it did not join its session within ${joinMs / 1_000} seconds`), joinMs);
  // A child process of this server needs no token.
  client.admit();
  client.extension = {
    id,
    sessionId,
    onJoined: () => {
      clearTimeout(late);
      if (!isOver) onJoined();
    },
  };
  void process.ended.then((exit) => fail(describeExit(exit, client.extension?.refusal, stderr.text)));
  // The connection usually closes because the program ends, and its exit is the better reason to report.
  void client.wire.closed.then(() => {
    if (!isOver) setTimeout(() => fail("it closed its connection"), endingMs).unref();
  });
  return {
    pid: process.pid,
    async stop() {
      isOver = true;
      clearTimeout(late);
      client.wire.close();
      await process.stop(stopMs);
    },
  };
}

// The grace period of the Copilot runtime.
const stopMs = 5_000;

function outputOf({ stdin }: ManagedProcess): { write(text: string): void; readonly pendingBytes: number } {
  return {
    write: (text) => {
      if (stdin.writable) stdin.write(text);
    },
    get pendingBytes() {
      return stdin.writableLength;
    },
  };
}

function describeExit({ code, signal }: ProcessExit, refusal: string | undefined, stderr: string): string {
  if (refusal !== undefined) return `it could not join its session: ${refusal}`;
  const how = signal === null ? `it exited with code ${code}` : `it was killed by ${signal}`;
  // A stack trace would hide the error's message.
  const lines = stderr.split(/\r?\n/).filter((line) => line.trim() !== "" && !/^\s+at /.test(line));
  return lines.length === 0 ? how : `${how}. Last lines of stderr:\n${lines.slice(-8).join("\n").slice(-800)}`;
}

/** The module name of the SDK, which extensions import. */
const sdkName = "@github/copilot-sdk";

/**
 * Finds the folder with the modules of the Copilot SDK (`index.js`, `extension.js`) for an extension: the first of the named
 * folders that has them, else the SDK that is installed for the extension or the working directory. `workingDirectory` is
 * undefined when it is not trusted.
 * @internal
 */
export function findSdk(
  named: readonly (string | undefined)[],
  extension: string,
  workingDirectory: string | undefined,
): string | undefined {
  const folders = named.filter((folder) => folder !== undefined).flatMap((folder) => [folder, join(folder, "dist")]);
  return (
    folders.find(isSdk) ?? installedFor(dirname(extension)) ?? (workingDirectory === undefined ? undefined : installedFor(workingDirectory))
  );
}

function isSdk(folder: string): boolean {
  return ["index.js", "extension.js"].every((name) => statFile(join(folder, name))?.isFile() === true);
}

function installedFor(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const sdk = join(at, "node_modules", sdkName, "dist");
    if (isSdk(sdk)) return sdk;
    if (dirname(at) === at) return undefined;
  }
}

/** Arguments for Node.js that make every import of the SDK's name resolve to a folder. */
function nodeArguments(sdk: string): readonly string[] {
  const urlOf = (name: string): string => pathToFileURL(join(sdk, name)).href;
  const addresses = { [sdkName]: urlOf("index.js"), [`${sdkName}/extension`]: urlOf("extension.js") };
  const hooks = `const addresses = ${JSON.stringify(addresses)};
export const resolve = (specifier, context, next) =>
  Object.hasOwn(addresses, specifier) ? { url: addresses[specifier], shortCircuit: true } : next(specifier, context);`;
  return ["--import", toData(`import { register } from "node:module"; register(${JSON.stringify(toData(hooks))});`)];
}

function toData(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type * as Skillhost from "skillhost";
import { onTestFinished } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { findSandbox, type Sandbox } from "../../src/io/process/enclose-process.ts";
import { buildPackage } from "../built-package.ts";
import { tempFolder } from "./kit.ts";

/** The built library: children run the built program, so the whole host is the built one. */
export const libraryUrl: string = pathToFileURL(join(buildPackage().folder, "dist/index.js")).href;
export const { createHost } = (await import(/* @vite-ignore */ libraryUrl)) as typeof Skillhost;

const sandbox: Sandbox = await findSandbox();
/** Whether the operating system of this machine encloses processes. */
export const hasSystemSandbox: boolean = sandbox.kind === "system";

export interface IsolatedHost {
  readonly host: Skillhost.Host;
  /** The text of a call's result. */
  text(tool: string, args?: object): Promise<string>;
}

/** A host of this directory, until the end of the test. */
export async function openIsolated(directory: string, options: Skillhost.HostOptions): Promise<IsolatedHost> {
  const host = await createHost({
    skillDirectories: [directory],
    watch: false,
    logger: silentLogger,
    trust: { folders: true },
    sessionsDirectory: tempFolder(),
    ...options,
  });
  onTestFinished(() => host.close());
  return { host, text: async (tool, args = {}) => (await host.callTool(tool, args)).text };
}

import { join } from "node:path";
import type { Logger } from "../base/logger.ts";
import { startHost } from "../host/create-host.ts";
import type { Host } from "../host/host.ts";
import { workspacePlugin } from "../plugin-host/bundled.ts";
import type { CliIo } from "./cli-io.ts";
import type { CommandContext } from "./command-context.ts";
import { loadConfig } from "./find-config.ts";
import type { HeadlessArguments } from "./headless-arguments.ts";
import { toHostOptions } from "./open-host.ts";
import { createOutput } from "./output.ts";
import { readConsent, withheldCode } from "./project-consent.ts";
import { settlePackages } from "./settle-packages.ts";

/** The host behind a server for the Copilot SDK: configured as for any command, and watching. */
export async function openHeadlessHost(options: HeadlessArguments, io: CliIo, log: Logger, home: string): Promise<Host> {
  const config = loadConfig(options.config, io.cwd);
  const { skills, mcpConfig } = options;
  const context: CommandContext = {
    io,
    out: createOutput(io, { json: false, quiet: true, color: false, command: "headless" }),
    options: { ...(skills.length > 0 && { skills }), ...(mcpConfig.length > 0 && { mcpConfig }), color: false },
    config,
    consent: readConsent(io, { trust: options.trusts }),
    log,
  };
  for (const { code, message, file } of config.origin?.diagnostics ?? []) log.warning(message, { code, file });
  const withheld = withheldCode(context);
  if (withheld !== undefined) io.stderr.write(`error: ${withheld.code} ${withheld.message}\n`);
  const hostOptions = toHostOptions(context, [], true);
  await settlePackages(hostOptions, context);
  const kept = {
    sessionsDirectory: join(home, "sessions"),
    approvalsDirectory: join(home, "approvals"),
    pluginDataDirectory: join(home, "plugin-data"),
    mcp: { cacheDirectory: join(home, "mcp-cache"), credentialsDirectory: join(home, "oauth") },
  };
  // Clients of a Copilot runtime expect its built-in tools.
  return startHost({ ...hostOptions, ...kept }, [workspacePlugin]);
}

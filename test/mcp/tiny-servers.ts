import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { silentLogger } from "../../src/base/logger.ts";
import type { LocalServerSpec } from "../../src/formats/mcp/mcp-server-spec.ts";
import { connectServer } from "../../src/mcp/connection/connect-server.ts";
import { McpSupervisor, type SupervisorOptions } from "../../src/mcp/supervisor/supervisor.ts";
import { patience } from "../slowness.ts";

const server = fileURLToPath(new URL("./tiny-server.mjs", import.meta.url));

/** Something no other process of this machine has among its arguments. */
export function newMarker(): string {
  return `tiny-${randomUUID()}`;
}

/** A real server, see tiny-server.mjs for its manners. */
export function tinySpec(name: string, marker: string, manners: readonly string[] = [], startsFile = ""): LocalServerSpec {
  return {
    type: "stdio",
    name,
    command: process.execPath,
    args: [server, marker, startsFile, ...manners, `--name=${name}`],
    env: {},
    cwd: undefined,
    tools: undefined,
    timeout: patience(10_000),
    isDisabled: false,
  };
}

export function realSupervisor(more: Partial<SupervisorOptions> = {}): McpSupervisor {
  return new McpSupervisor({
    connect: (spec, request) => connectServer(spec, { ...request, log: silentLogger }),
    workingDirectory: tmpdir(),
    log: silentLogger,
    ...more,
  });
}

/** How many living processes have the marker among their arguments. */
export function countProcesses(marker: string): number {
  return argumentsOfAll().filter((text) => text.includes(marker)).length;
}

function argumentsOfAll(): string[] {
  if (process.platform !== "linux") return execFileSync("ps", ["-A", "-o", "args"], { encoding: "utf8" }).split("\n");
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        // Empty of one that has ended and was not yet asked for by its parent.
        return readFileSync(`/proc/${pid}/cmdline`, "utf8");
      } catch {
        // It ended while we looked.
        return "";
      }
    });
}

import type { Server, ServerContext } from "@modelcontextprotocol/server";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";

/** The errors of a host, for the clients of its servers. */
export interface HostErrors {
  current(): readonly Diagnostic[];
  /** Hears of each that comes. */
  onError(listener: (diagnostic: Diagnostic) => void): Disposable;
}

export function errorsOf(host: Host): HostErrors {
  const isError = ({ severity }: Diagnostic): boolean => severity === "error";
  return {
    current: () => host.diagnostics.filter(isError),
    onError: (listener) =>
      host.on("diagnostic", (diagnostic) => {
        if (isError(diagnostic)) listener(diagnostic);
      }),
  };
}

const logger = "skillhost";

/**
 * Tells what is wrong with the skills behind the tools with an answer to a client's request, as `notifications/message` at
 * the level `error`. Clients of revision 2026-07-28 say with each request whether they want messages, so these get all
 * that is wrong now; those before are told each error once.
 */
export function createErrorReport(errors: HostErrors, isModern: boolean): (context: ServerContext) => void {
  const told = new Set<string>();
  return ({ mcpReq }) => {
    for (const diagnostic of errors.current()) {
      const key = JSON.stringify(diagnostic);
      if (!isModern && told.has(key)) continue;
      told.add(key);
      mcpReq.log("error", toData(diagnostic), logger).catch(() => {});
    }
  };
}

/** Tells a client up to revision 2025-11-25 of the errors that come while it is connected. */
export function sendNewErrors(server: Server, errors: HostErrors, log: Logger): Disposable {
  return errors.onError((diagnostic) => {
    if (server.transport === undefined || server.getNegotiatedProtocolVersion() === undefined) return;
    server
      .sendLoggingMessage({ level: "error", logger, data: toData(diagnostic) }, server.transport.sessionId)
      .catch((error) => log.debug("A diagnostic could not be sent to an MCP client.", { error: toError(error) }));
  });
}

function toData({ code, message, file, range, source }: Diagnostic): object {
  return {
    code,
    message,
    ...(file !== undefined && { file }),
    ...(range !== undefined && { line: range.start.line, column: range.start.column }),
    ...(source !== undefined && { source }),
  };
}

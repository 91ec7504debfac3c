import { errorMessage, toError } from "../base/errors.ts";
import { CliError, describeStrayError, exitCodeOf } from "./cli-error.ts";
import { createOutput, type Output } from "./output.ts";
import type { CliIo } from "./process-io.ts";
import { type CommandAction, parseProgramArguments } from "./program.ts";
import { visibleText } from "./terminal-style.ts";

/** Runs the command line. Settles with the exit code: 0, done; 1, it ran and failed; 2, wrong usage. Never rejects. */
export async function main(argv: readonly string[], io: CliIo): Promise<number> {
  const parsed = parseProgramArguments(argv, io);
  if (parsed.kind === "ended") return parsed.exitCode;
  const { json = false, quiet = false, color } = parsed.options;
  const out = createOutput(io, { json, quiet, color, command: parsed.name });
  const stray = io.onStrayError?.((error) => void complainOfStray(error, out));
  try {
    return await run(parsed, io, out);
  } catch (error) {
    return fail(toError(error), out);
  } finally {
    stray?.[Symbol.dispose]();
  }
}

async function run(parsed: Extract<CommandAction, { kind: "command" }>, io: CliIo, out: Output): Promise<number> {
  const [{ loadConfig }, { logChoice, openLog }, { readConsent, requireConsent }, { withFoundSkills }] = await Promise.all([
    import("./config.ts"),
    import("./command-log.ts"),
    import("./project-consent.ts"),
    import("./found-skills.ts"),
  ]);
  const { options } = parsed;
  const config = loadConfig(options.config, io.cwd);
  const opened = openLog(logChoice(options, config), io);
  try {
    const consent = readConsent(io, options);
    const context = withFoundSkills({ io, out, options, config, consent, log: opened.log });
    // Neither arguments nor configuration: both may contain secrets, and the configuration may come from another author.
    opened.log.debug("A command starts.", { command: parsed.name, cwd: io.cwd });
    for (const diagnostic of config.origin?.diagnostics ?? []) out.complainOf(diagnostic);
    return await parsed.run(parsed.code === undefined ? context : await requireConsent(context, parsed.code));
  } catch (error) {
    opened.log.debug("The command failed.", { stack: toError(error).stack });
    throw error;
  } finally {
    opened[Symbol.dispose]();
  }
}

function fail(error: Error, out: Output): number {
  const diagnostics = error instanceof CliError ? error.diagnostics : [];
  const code = "code" in error && typeof error.code === "string" ? error.code : "UNEXPECTED";
  const message = errorMessage(error);
  if (out.isJson) out.envelope({ ok: false, diagnostics, error: { code, message } });
  else {
    out.complain(visibleText(message));
    for (const diagnostic of diagnostics) out.complainOf(diagnostic);
  }
  return exitCodeOf(error);
}

async function complainOfStray(error: Error, out: Output): Promise<void> {
  const { message, stack, place } = await describeStrayError(error);
  out.complain(visibleText(place === undefined && stack !== "" ? `${message}\n${stack}` : message));
}

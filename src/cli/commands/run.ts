import { writeFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { toError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import type { ExportFormat } from "../../host/session-store.ts";
import type { ProviderOptions } from "../../models/provider.ts";
import type { Session } from "../../session/session.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import { approveAll } from "../../tools/tool.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { withHost } from "../open-host.ts";
import type { CliIo } from "../process-io.ts";
import { type ChosenAgent, chooseAgent } from "../project-agents.ts";
import { visibleLine } from "../terminal-style.ts";
import { createTurnReport, type TurnReport } from "../turn-report.ts";

export interface RunCommandOptions {
  readonly agent?: string;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly system?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly yes?: boolean;
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
  readonly export?: string;
  readonly stream: boolean;
}

/** Lets a model work on one prompt with the tools of the skills. The user is not asked: calls that are not allowed are denied. */
export async function run(context: CommandContext, given: string, options: RunCommandOptions): Promise<number> {
  const { io, out } = context;
  const exported = options.export === undefined ? undefined : { file: resolve(io.cwd, options.export), format: formatOf(options.export) };
  const chosen = options.agent === undefined ? undefined : chooseAgent(context, options.agent);
  const sessionOptions = toSessionOptions(options, context, chosen);
  const prompt = given === "-" ? await io.stdin.read(io.signal) : given;
  if (prompt.trim() === "") throw usageError("The prompt is empty. Describe the task.");
  for (const diagnostic of chosen?.diagnostics ?? []) if (diagnostic.severity !== "info" && !out.isJson) out.complainOf(diagnostic);
  const outcome = await withHost(context, { workspace: true }, async (host) => {
    const session = await host.createSession(sessionOptions);
    const report = createTurnReport(io, out);
    session.on((event) => {
      if (out.isJson) out.json(event);
      report.onEvent(event);
    });
    try {
      return await converse(context, session, prompt, report);
    } finally {
      if (exported !== undefined) await exportTo(session, exported.file, exported.format);
    }
  });
  out.envelope({ ...outcome, diagnostics: chosen?.diagnostics ?? [] });
  return outcome.ok ? 0 : 1;
}

function toSessionOptions(options: RunCommandOptions, { io }: CommandContext, chosen: ChosenAgent | undefined): SessionOptions {
  const excluded = [...(chosen?.options.excludedTools ?? []), ...(options.excluded ?? [])];
  return {
    ...chosen?.options,
    ...modelFrom(options, io.env),
    // No command can resume this session.
    persist: false,
    streaming: options.stream,
    systemMessage: options.system === undefined ? undefined : { content: options.system },
    availableTools: options.available,
    excludedTools: excluded.length > 0 ? excluded : undefined,
    permissions: { allow: options.allow, deny: options.deny },
    onPermissionRequest: options.yes === true ? approveAll : undefined,
  };
}

interface Outcome {
  readonly ok: boolean;
  readonly data: object;
}

async function converse({ io, out }: CommandContext, session: Session, prompt: string, report: TurnReport): Promise<Outcome> {
  const stop = onAbort(io.signal, () => void session.abort());
  try {
    io.signal.throwIfAborted();
    const answer = await session.sendAndWait({ prompt });
    for (const name of report.unallowed) {
      out.note(
        `"${visibleLine(name)}" was denied: it is not allowed. Allow it with --allow ${visibleLine(name)}, or everything with --yes.`,
      );
    }
    return { ok: !report.hitLimit, data: { content: answer.content, model: answer.model, sessionId: session.id } };
  } catch (error) {
    if (io.signal.aborted) throw new CliError("STOPPED", toError(io.signal.reason).message, 1);
    throw error;
  } finally {
    stop[Symbol.dispose]();
  }
}

const formats: Readonly<Record<string, ExportFormat>> = { ".jsonl": "jsonl", ".md": "markdown", ".markdown": "markdown" };

function formatOf(file: string): ExportFormat {
  const format = formats[extname(file).toLowerCase()];
  if (format === undefined)
    throw usageError(
      `--export requires a file name that ends with .md (for reading) or .jsonl (every event), but got ${visibleLine(file)}.`,
    );
  return format;
}

async function exportTo(session: Session, file: string, format: ExportFormat): Promise<void> {
  const { exportEvents } = await import("../../host/session-store.ts");
  try {
    await writeFile(file, exportEvents(session.id, await session.getMessages(), format), { mode: 0o600 });
  } catch (error) {
    throw new CliError("EXPORT_FAILED", `The session could not be written to ${file}: ${toError(error).message}`, 1);
  }
}

/**
 * The model and its endpoint from the command line and the environment. The key comes only from the environment: other users can read
 * command lines.
 */
function modelFrom(
  given: { readonly model?: string; readonly baseUrl?: string },
  env: CliIo["env"],
): { readonly model: string; readonly provider: ProviderOptions } {
  const apiKey = env["OPENAI_API_KEY"] || undefined;
  const baseUrl = given.baseUrl ?? (env["OPENAI_BASE_URL"] || undefined) ?? (apiKey && "https://api.openai.com/v1");
  if (baseUrl === undefined) {
    throw usageError(
      "No model endpoint is configured. Pass --base-url or set OPENAI_BASE_URL, and set OPENAI_API_KEY if the endpoint requires a key.",
    );
  }
  const model = given.model ?? (env["OPENAI_MODEL"] || undefined);
  if (model === undefined) throw usageError(`No model is chosen. Pass one that ${hostOf(baseUrl)} serves with --model.`);
  return { model, provider: { type: "openai", baseUrl, apiKey } };
}

function hostOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : "the endpoint";
}

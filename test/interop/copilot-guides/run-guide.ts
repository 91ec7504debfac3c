import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildPackage } from "../../built-package.ts";
import { anthropicAnswer, anthropicStreamAnswer } from "../../doubles/scripted-anthropic.ts";
import { chatAnswer, chatStreamAnswer, type ScriptedAnswer, startScriptedModel } from "../../doubles/scripted-model.ts";
import { responsesAnswer, responsesStreamAnswer } from "../../doubles/scripted-responses.ts";
import { isTurn, lookUp, write } from "../copilot-sdk/sdk-kit.ts";
import { installPeer } from "../install-peer.ts";
import type { Guide } from "./guides.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

/** What the model is asked, without headers. */
interface Asked {
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: a request of any of the model APIs
  readonly body: any;
}

/** What an SDK program saw of a runtime. */
export interface GuideRun {
  /** The lines that the program printed. */
  readonly output: readonly string[];
  /** By session, in the order in which the sessions had their first event. */
  readonly sessions: readonly (readonly SeenEvent[])[];
  readonly requests: readonly Asked[];
}

export interface SeenEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

/** The SDK of npm with the runtime that it starts by default; throws where npm cannot install it. */
export function installRuntime(): void {
  const platform = `${process.platform}-${process.arch}`;
  installPeer(here, `node_modules/@github/copilot-sdk-${platform}/prebuilds/${platform}/copilot-runtime`);
}

/** Runs a program with a model that answers by its script. `runtime` is the path of another runtime than the default one. */
export async function runGuide(guide: Guide, runtime?: string): Promise<GuideRun> {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-guide-"));
  const replies = JSON.parse(JSON.stringify(guide.replies).replaceAll("<folder>", folder));
  const model = await startScriptedModel(({ path, body }) => (isTurn(path) ? encode(replies.shift(), path, body) : lookUp(path)));
  const events = join(folder, "events.jsonl");
  try {
    const project = join(folder, "project");
    mkdirSync(project);
    mkdirSync(join(folder, "home"));
    for (const [path, content] of Object.entries(guide.files ?? {})) write(join(project, path), content);
    write(events, "");
    const child = spawn(
      process.execPath,
      ["--import", pathToFileURL(join(here, "record-events.mjs")).href, join(here, "programs", `${guide.name}.mjs`)],
      {
        cwd: project,
        env: { ...environment(folder, model.url), GUIDE_EVENTS: events, ...(runtime !== undefined && { COPILOT_CLI_PATH: runtime }) },
        stdio: ["ignore", "pipe", "pipe"],
        timeout: 90_000,
      },
    );
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    if (code !== 0) throw new Error(`${guide.name}.mjs ended with ${code}.\n${output}\n${errors}`);
    const tidy = (line: string): string => line.replaceAll(folder, "<folder>").replaceAll(model.url, "<model>");
    const recorded = lines(tidy(readFileSync(events, "utf8"))).map((line) => JSON.parse(line));
    const sessions = new Map<string, SeenEvent[]>();
    for (const { session, event } of recorded) sessions.set(session, [...(sessions.get(session) ?? []), event]);
    return {
      output: lines(tidy(output)),
      sessions: [...sessions.values()],
      requests: model.requests.filter(({ path }) => isTurn(path)).map(({ path, text }) => ({ path, body: JSON.parse(tidy(text)) })),
    };
  } finally {
    await model.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

export function ourRuntime(): string {
  return buildPackage().bin;
}

function environment(folder: string, url: string): NodeJS.ProcessEnv {
  const { GH_TOKEN: _gh, GITHUB_TOKEN: _github, ...rest } = process.env;
  const home = join(folder, "home");
  return {
    ...rest,
    HOME: home,
    COPILOT_HOME: join(home, ".copilot"),
    COPILOT_API_URL: url,
    COPILOT_DEBUG_GITHUB_API_URL: url,
    MODEL_URL: url,
    SKILLHOST_TRUST: folder,
  };
}

/** A reply in the format that the request asks for. */
function encode(
  reply: Guide["replies"][number] | undefined,
  path: string,
  { model, stream: isStreamed }: Asked["body"],
): ScriptedAnswer | undefined {
  if (reply === undefined) return undefined;
  if (typeof reply === "object" && "refused" in reply) return reply.refused;
  const said = { model, ...(typeof reply === "string" ? { content: reply } : reply) };
  if (/\/messages/.test(path)) return isStreamed ? anthropicStreamAnswer(said) : anthropicAnswer(said);
  if (/\/responses/.test(path)) return isStreamed ? responsesStreamAnswer(said) : responsesAnswer(said);
  return isStreamed ? chatStreamAnswer(said) : chatAnswer(said);
}

function lines(output: string): string[] {
  return output.split("\n").filter((line) => line !== "");
}

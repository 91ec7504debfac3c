import { counted } from "../../base/text.ts";
import { waitFor } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import { spawnProcess } from "../../io/process/child-process.ts";
import type { AskToSignIn } from "../../session/mcp/server-connections.ts";
import type { CommandContext } from "../command-context.ts";

import { withHost } from "../open-host.ts";
import type { CliIo } from "../process-io.ts";
import { visibleLine } from "../terminal-style.ts";

export interface LoginOptions {
  readonly again?: boolean;
  readonly browser?: boolean;
}

/** Signs in to a remote MCP server, and reports whether it can be used. */
export function login(context: CommandContext, server: string, options: LoginOptions): Promise<number> {
  return withHost(context, {}, async (host) => {
    let isAsked = false;
    const asking: AskToSignIn = (data, signal) => {
      isAsked = true;
      return authorize(context, options, data, signal);
    };
    const info = await host.signInToServer(server, { authorize: asking, signal: context.io.signal, again: options.again === true });
    return report(context, info, isAsked);
  });
}

/** Signs out of a remote MCP server. */
export function logout(context: CommandContext, server: string): Promise<number> {
  const { io, out } = context;
  return withHost(context, {}, async (host) => {
    await host.signOutOfServer(server, { signal: io.signal });
    if (out.isJson) out.envelope({ ok: true, data: { server }, diagnostics: [] });
    else out.line(`Signed out of ${visibleLine(server)}.`);
    return 0;
  });
}

/** The URL always goes to stderr, even with --quiet: without it the user cannot sign in. */
async function authorize(
  { io, out }: CommandContext,
  { browser }: LoginOptions,
  { serverName, url }: Parameters<AskToSignIn>[0],
  signal: AbortSignal,
): ReturnType<AskToSignIn> {
  io.stderr.write(`To sign in to ${visibleLine(serverName)}, open this address in a browser:\n${visibleLine(url)}\n`);
  if (browser === true) {
    if (!(await openBrowser(url, io))) out.note("The browser could not be opened.");
  }
  const { ask } = io;
  if (ask === undefined || !io.stdin.isTTY || !io.stderr.isTTY) return waitFor(never, { signal });
  const question = "If the browser is on another machine, paste the address of the last page here:\n> ";
  const callbackUrl = (await ask(question, signal)).trim();
  // An empty answer: the user continues in the browser.
  return callbackUrl === "" ? waitFor(never, { signal }) : { callbackUrl };
}

const never: Promise<never> = new Promise(() => {});

type ServerInfo = Awaited<ReturnType<Host["signInToServer"]>>;

function report({ out }: CommandContext, info: ServerInfo, isAsked: boolean): number {
  const isConnected = info.status === "connected";
  const error = { code: "MCP_NOT_CONNECTED", message: info.error ?? `The server's status is "${info.status}".` };
  if (out.isJson) {
    out.envelope({
      ok: isConnected,
      data: { server: info, signedIn: isAsked && isConnected },
      diagnostics: info.diagnostics,
      ...(!isConnected && { error }),
    });
  } else if (isConnected) {
    const how = isAsked ? "Signed in to" : "No sign-in was needed for";
    out.line(`${how} ${visibleLine(info.name)}, which has ${counted(info.tools.length, "tool")}.`);
    if (!isAsked) out.note("The server needs no sign-in, or you are still signed in. To sign in again, use --again.");
  } else {
    out.complain(visibleLine(error.message));
  }
  return isConnected ? 0 : 1;
}

/** Opens a URL in the user's browser with the system's opener. False: no opener worked. */
async function openBrowser(address: string, { cwd, env }: Pick<CliIo, "cwd" | "env">): Promise<boolean> {
  const [command, ...args] = openers[process.platform] ?? ["xdg-open"];
  // The environment contains the connection to the user's desktop.
  const environment = Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
  const spawned = await spawnProcess({ command: command!, args: [...args, address], cwd, environment });
  if (spawned.kind !== "spawned") return false;
  const { code } = await spawned.process.ended;
  return code === 0;
}

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  // Unlike "start", it takes the URL literally, without a shell.
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

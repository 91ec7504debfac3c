import { errorMessage } from "../base/errors.ts";
import { whenAborted } from "../base/wait.ts";
import type { Host } from "../host/host.ts";
import type { CommandContext } from "./command-context.ts";
import { callOnHost } from "./commands/call.ts";
import { visibleText } from "./terminal-style.ts";

export const keyHints = "r reload, c call, l list, h help, q quit";

interface DevScreen {
  /** Prints the loaded skills. */
  list(): void;
  /** Removes the status line, so that a question can be asked below the output. */
  hideStatus(): void;
  showStatus(): void;
}

/** Does what keys ask for until the user quits or the command is stopped. Without a terminal to read keys from, it only waits. */
export async function followKeys(context: CommandContext, host: Host, screen: DevScreen): Promise<void> {
  const { io, out } = context;
  const quit = new AbortController();
  const signal = AbortSignal.any([io.signal, quit.signal]);
  let keys: Disposable | undefined;
  let isBusy = false;
  const actions: Readonly<Record<string, () => Promise<void> | void>> = {
    r: async () => {
      await host.reload();
      out.note("All files were checked, and changed ones loaded.");
    },
    c: async () => {
      // A question reads a line, and Ctrl-C during it or the call ends only those.
      keys?.[Symbol.dispose]();
      screen.hideStatus();
      try {
        await askAndCall(context, host);
      } finally {
        if (!signal.aborted) keys = listen();
        screen.showStatus();
      }
    },
    l: () => screen.list(),
    h: () => out.note("r  check all files and load changed ones\nc  call a tool\nl  list the skills\nh  this help\nq  quit (also Ctrl-C)"),
  };
  const press = async (key: string): Promise<void> => {
    if (key === "q" || key === endOfInput) quit.abort();
    const action = Object.hasOwn(actions, key) ? actions[key] : undefined;
    if (action === undefined || isBusy || signal.aborted) return;
    isBusy = true;
    try {
      await action();
    } catch (error) {
      if (!signal.aborted) out.complain(visibleText(errorMessage(error)));
    } finally {
      isBusy = false;
    }
  };
  const listen = (): Disposable | undefined => io.openKeys?.((key) => void press(key));
  keys = listen();
  try {
    await whenAborted(signal);
  } finally {
    keys?.[Symbol.dispose]();
  }
}

const endOfInput = "\u0004";

async function askAndCall(context: CommandContext, host: Host): Promise<void> {
  const { io, out } = context;
  const stop = new AbortController();
  using _interrupt = io.onInterrupt?.(() => stop.abort(new Error("The call was stopped.")));
  const during = { ...context, io: { ...io, signal: AbortSignal.any([io.signal, stop.signal]) } };
  const line = (await io.ask?.('Tool to call, and its arguments as JSON if you like (hello {"name": "Ada"}): ', during.io.signal)) ?? "";
  const [, name, json = ""] = /^\s*(\S+)\s*(.*)$/s.exec(line) ?? [];
  if (name === undefined) {
    out.note("Nothing was called.");
    return;
  }
  await callOnHost(host, during, name, json === "" ? [] : [json], { reserved: [] });
}

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";
import { patience } from "../slowness.ts";

// Runs a program in a terminal of its own, passes stdin and stdout through, and reports on stderr how the program left the terminal.
const bridge = `
import fcntl, json, os, pty, select, struct, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(slave, fd)
    os.execvp(sys.argv[1], sys.argv[1:])
inputs = [master, 0]
ended = False
while True:
    ready, _, _ = select.select(inputs, [], [], 0.05)
    if 0 in ready:
        data = os.read(0, 4096)
        if data:
            os.write(master, data)
        else:
            inputs.remove(0)
    if master in ready:
        os.write(1, os.read(master, 65536))
    elif ended:
        break
    else:
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        ended = ended_pid != 0
flags = termios.tcgetattr(slave)[3]
json.dump({"code": os.waitstatus_to_exitcode(status), "reads_lines": bool(flags & termios.ICANON), "echoes": bool(flags & termios.ECHO)}, sys.stderr)
`;

/** Whether this machine can run programs in a terminal: Python 3.9 or later with its module pty. */
export const hasTerminals =
  process.platform !== "win32" && spawnSync("python3", ["-c", "import os, pty, termios; os.waitstatus_to_exitcode"]).status === 0;

interface LeftTerminal {
  readonly code: number;
  /** Whether the terminal reads lines again and shows what is typed, as before. */
  readonly reads_lines: boolean;
  readonly echoes: boolean;
}

interface TerminalChild {
  readonly screen: string;
  readonly done: Promise<LeftTerminal>;
  type(text: string): void;
  /** Waits until the screen shows a text that was not waited for before. */
  shows(text: string): Promise<void>;
}

/** Starts a program of Node.js in a real terminal. */
export function startInTerminal(argv: readonly string[], cwd: string, env: NodeJS.ProcessEnv): TerminalChild {
  const child = spawn("python3", ["-c", bridge, process.execPath, ...argv], { cwd, env });
  let [screen, report, seen] = ["", "", 0];
  const watchers = new Set<() => void>();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
    for (const watcher of watchers) watcher();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    report += text;
  });
  const done = once(child, "close").then(() => JSON.parse(report) as LeftTerminal);
  // Its end is also waited for by each shows().
  done.catch(() => {});
  // The program in the terminal ends with its terminal (SIGHUP).
  onTestFinished(() => void child.kill());
  return {
    done,
    type: (text) => void child.stdin.write(text),
    shows: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const at = screen.indexOf(text, seen);
          if (at === -1) return;
          seen = at + text.length;
          end();
          resolve();
        };
        const fail = (): void => {
          end();
          reject(new Error(`The terminal does not show ${JSON.stringify(text)}:\n${screen}\n${report}`));
        };
        const timer = setTimeout(fail, patience(15_000));
        const end = (): void => {
          clearTimeout(timer);
          watchers.delete(look);
          child.off("close", fail);
        };
        watchers.add(look);
        child.once("close", fail);
        look();
      }),
    get screen() {
      return screen;
    },
  };
}

const [interruptKey, suspendKey, escapeKey] = ["\u0003", "\u001a", "\u001b"];

/**
 * Calls the listener for each key that is pressed, without waiting for a line. The terminal returns to lines when it is disposed of, when the
 * process ends, also by an error, and while the process is suspended.
 */
export function openTerminalKeys(self: NodeJS.Process, onKey: (key: string) => void, onInterrupt: () => void): Disposable {
  const { stdin } = self;
  const setRaw = (isRaw: boolean): void => {
    try {
      stdin.setRawMode(isRaw);
    } catch {
      // The terminal was closed, and has no mode any more.
    }
  };
  const restore = (): void => setRaw(false);
  const resume = (): void => setRaw(true);
  const suspend = (): void => {
    restore();
    self.kill(self.pid, "SIGTSTP");
  };
  const onData = (chunk: Buffer): void => {
    const text = chunk.toString();
    // Arrows and function keys send sequences, whose letters were not pressed.
    if (text.startsWith(escapeKey)) return;
    for (const key of text) {
      // In raw mode the terminal sends these keys instead of signals.
      if (key === interruptKey) onInterrupt();
      else if (key === suspendKey && self.platform !== "win32") suspend();
      else onKey(key);
    }
  };
  self.on("exit", restore).on("SIGCONT", resume);
  stdin.on("data", onData).on("error", onInterrupt).on("end", onInterrupt);
  setRaw(true);
  stdin.resume();
  return {
    [Symbol.dispose]() {
      self.off("exit", restore).off("SIGCONT", resume);
      stdin.off("data", onData).off("error", onInterrupt).off("end", onInterrupt);
      restore();
      stdin.pause();
    },
  };
}

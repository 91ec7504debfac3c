import type { Host } from "../../host/host.ts";
import { messageText } from "./message-log.ts";
import { WatchedHost } from "./watched-host.ts";

const batch = 500;

/**
 * Writes the feed of a host, as the text of one JSON object for each message: a `snapshot` at once, then what happens, until the result is
 * disposed of. What is written cannot be answered, so questions appear, but stay with those who are asked.
 */
export function writeFeed(host: Host, write: (message: string) => void): Disposable {
  let written = 0;
  const watched = new WatchedHost(host, { isReadOnly: true, onAppended: () => writeNew() });
  const { log } = watched;
  const writeMessage = (type: string, body: string): void => write(messageText(type, written, Date.now(), body));
  const writeSnapshot = (): void => {
    written = log.last;
    writeMessage("snapshot", watched.snapshot());
  };
  const writeNew = (): void => {
    while (written < log.last) {
      const messages = log.after(written, batch);
      if (messages === undefined) {
        writeMessage("dropped", JSON.stringify({ count: log.last - written }));
        writeSnapshot();
        continue;
      }
      written = messages.at(-1)!.seq;
      for (const { text } of messages) write(text);
    }
  };
  log.isRead = true;
  writeSnapshot();
  return watched;
}

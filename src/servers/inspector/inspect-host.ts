import { type FieldReaders, mustBe, readFields, readFlag } from "../../base/read-fields.ts";
import type { Host } from "../../host/host.ts";
import type { Inspector, InspectorOptions } from "../../host/inspection.ts";
import { FeedApps } from "./feed-apps.ts";
import { FeedCalls } from "./feed-calls.ts";
import { FeedPins } from "./feed-pins.ts";
import { answerRequest, feedMethods } from "./feed-requests.ts";
import { serveFeed } from "./inspector-server.ts";
import { WatchedHost } from "./watched-host.ts";

/** Serves a host, as `serveInspector` says. `pageFolder`: where the built page lies; default: in this package. */
export async function serveHost(host: Host, options: InspectorOptions, pageFolder: string | undefined): Promise<Inspector> {
  const { port = 0, readOnly = false } = readFields(options, "inspector options", "INSPECTOR_OPTIONS", readers);
  const open: Disposable[] = [];
  const closing: AsyncDisposable[] = [];
  let url = "";
  const inspector = await serveFeed(
    (onAppended) => {
      const watched = new WatchedHost(host, { isReadOnly: readOnly, onAppended });
      const calls = new FeedCalls(host, watched);
      const apps = new FeedApps(calls);
      const pins = new FeedPins(host, watched, { isReadOnly: readOnly, session: () => calls.session() });
      open.push(watched);
      closing.push(pins, calls);
      return {
        log: watched.log,
        snapshot() {
          pins.begin();
          return watched.snapshot();
        },
        answer: (request) => answerRequest(request, feedMethods, { host, watched, calls, pins, apps, url, isReadOnly: readOnly }),
        blob: (id) => watched.blobs.read(id),
        app: (id, allowsDomains) => apps.page(id, allowsDomains),
      };
    },
    { port, pageFolder },
  ).catch((error: unknown) => {
    for (const each of closing) void each[Symbol.asyncDispose]();
    for (const each of open) each[Symbol.dispose]();
    throw error;
  });
  url = `http://127.0.0.1:${inspector.port}/request`;
  return {
    ...inspector,
    async [Symbol.asyncDispose]() {
      await inspector[Symbol.asyncDispose]();
      for (const each of closing) await each[Symbol.asyncDispose]();
      for (const each of open) each[Symbol.dispose]();
    },
  };
}

const readers: FieldReaders<InspectorOptions> = { port: readPort, readOnly: readFlag };

function readPort(value: unknown, path: string): number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535
    ? (value as number)
    : mustBe(path, "a port number");
}

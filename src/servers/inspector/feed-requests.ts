import { HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import {
  type FieldReaders,
  fieldsReader,
  mustBe,
  readFields,
  readFlag,
  readPositive,
  readRecord,
  readText,
} from "../../base/read-fields.ts";
import type { Host } from "../../host/host.ts";
import type { ProviderOptions } from "../../models/provider.ts";
import { type ScriptedMessage, scriptedModel } from "../../models/scripted-model.ts";
import type { Session } from "../../session/session.ts";
import { redactSecrets } from "./blob-store.ts";
import type { FeedApps } from "./feed-apps.ts";
import type { FeedCalls } from "./feed-calls.ts";
import { toFeedJson } from "./feed-json.ts";
import type { FeedRequests } from "./feed-messages.ts";
import { exportCall, type FeedPins } from "./feed-pins.ts";
import { modelView } from "./model-view.ts";
import { listCheckpoints, listRewindPoints, previewRewind, readCheckpoint, rewindSession } from "./session-history.ts";
import { describeTodos } from "./session-todos.ts";
import type { WatchedHost } from "./watched-host.ts";
import { inspectorClient } from "./watched-session.ts";

export type FeedMethod = keyof FeedRequests;

/** One method of the request door: the readers of its parameters, and what it does. */
interface MethodRow<M extends FeedMethod> {
  readonly reads: FieldReaders<FeedRequests[M]["params"]>;
  /** It changes nothing, so it is allowed in read-only mode. */
  readonly onlyReads?: true;
  run(params: FeedRequests[M]["params"], parts: FeedRequestParts): FeedRequests[M]["result"] | Promise<FeedRequests[M]["result"]>;
}

export interface FeedRequestParts {
  readonly host: Host;
  readonly watched: WatchedHost;
  readonly calls: FeedCalls;
  readonly pins: FeedPins;
  readonly apps: FeedApps;
  /** The address of the request door. */
  readonly url: string;
}

export type FeedMethods = { readonly [M in FeedMethod]?: MethodRow<M> };

/**
 * Carries out a request of a reader.
 * @throws HostError `INSPECTOR_METHOD` for an unknown method, `INSPECTOR_READ_ONLY`, `INSPECTOR_PARAMS` naming the parameter; the
 * errors of what the method does.
 */
export async function answerRequest(
  request: unknown,
  methods: FeedMethods,
  { isReadOnly, ...parts }: FeedRequestParts & { readonly isReadOnly: boolean },
): Promise<unknown> {
  if (!isRecord(request) || typeof request["method"] !== "string")
    throw new HostError("INSPECTOR_PARAMS", 'A request is an object with "method" and "params".');
  const { method, params = {} } = request;
  const row = Object.hasOwn(methods, method) ? (methods[method as FeedMethod] as MethodRow<FeedMethod> | undefined) : undefined;
  if (row === undefined) {
    const known = Object.keys(methods).join(", ");
    throw new HostError("INSPECTOR_METHOD", `${JSON.stringify(method)} is not a method. The methods are: ${known}.`);
  }
  if (isReadOnly && row.onlyReads !== true)
    throw new HostError("INSPECTOR_READ_ONLY", `This inspector is read-only, and ${method} calls or changes something.`);
  return row.run(readFields(params as object, `parameters of ${method}`, "INSPECTOR_PARAMS", row.reads), parts);
}

const done = {} as const;

export const feedMethods: FeedMethods = {
  call: {
    reads: { tool: readText, arguments: readRecord, sessionId: readText, wait: readFlag },
    async run({ tool, arguments: args, sessionId, wait }, { calls }) {
      const { callId, ended } = await calls.begin(required(tool, "tool"), args ?? {}, sessionId);
      return { callId, ...(wait === true && { call: await ended }) };
    },
  },
  cancel: {
    reads: { callId: readText },
    run({ callId }, { calls }) {
      if (!calls.cancel(callId)) throw new HostError("CALL_UNKNOWN", `No call ${JSON.stringify(callId)} is running.`);
      return done;
    },
  },
  validate: {
    reads: { tool: readText, arguments: readRecord },
    onlyReads: true,
    async run({ tool, arguments: args }, { calls }) {
      const found = await calls.tool(required(tool, "tool"));
      const validated = await found.validate(args ?? {});
      return { problems: validated.ok ? [] : validated.issues.map(({ path, message }) => ({ path: toPointer(path), message })) };
    },
  },
  answer: {
    reads: { askId: readText, sessionId: readText, answer: readRecord },
    run({ askId, sessionId, answer }, { watched }) {
      return { isFirst: watched.session(sessionId)?.answer(askId, answer) ?? false };
    },
  },
  reload: {
    reads: {},
    async run(_params, { host }) {
      await host.reload();
      return done;
    },
  },
  explain: {
    reads: { name: readText },
    onlyReads: true,
    run: ({ name }, { host, watched }) => toFeedJson(host.explain(required(name, "name")), watched.blobs) as Json,
  },
  prompt: {
    reads: { folder: readText, path: readText },
    onlyReads: true,
    run({ folder, path }, { host }) {
      const prompt = host.skills.find((skill) => skill.folder === folder)?.prompts.find((each) => each.path === path);
      if (prompt === undefined)
        throw new HostError("PROMPT_UNKNOWN", `There is no prompt ${JSON.stringify(path)} in ${JSON.stringify(folder)}.`);
      return { text: redactSecrets(prompt.text) };
    },
  },
  "session.create": {
    reads: { model: readText, provider: readRecord, script: readScript, agent: readText },
    async run({ script, provider, ...rest }, { host }) {
      const chatModel = script === undefined ? undefined : scriptedModel(...(script as readonly ScriptedMessage[]));
      const options = {
        ...rest,
        ...(chatModel && { chatModel }),
        ...(provider && { provider: provider as unknown as ProviderOptions }),
        // As in a chat: going back can restore files.
        fileChangeTracking: true,
      };
      const session = await host.createSession(options, { client: inspectorClient });
      return { sessionId: session.id };
    },
  },
  "session.send": {
    reads: { sessionId: readText, prompt: readText },
    async run({ sessionId, prompt }, parts) {
      await openSession(sessionId, parts).send(required(prompt, "prompt"));
      return done;
    },
  },
  "session.abort": {
    reads: { sessionId: readText },
    async run({ sessionId }, parts) {
      await openSession(sessionId, parts).abort();
      return done;
    },
  },
  "session.close": {
    reads: { sessionId: readText },
    async run({ sessionId }, parts) {
      await openSession(sessionId, parts).disconnect();
      return done;
    },
  },
  "session.modelView": {
    reads: { sessionId: readText },
    onlyReads: true,
    run: ({ sessionId }, parts) => modelView(openSession(sessionId, parts), parts.watched.blobs),
  },
  "session.todos": {
    reads: { sessionId: readText },
    onlyReads: true,
    run: ({ sessionId }, parts) => describeTodos(openSession(sessionId, parts)),
  },
  "session.listRewindPoints": {
    reads: { sessionId: readText },
    onlyReads: true,
    run: ({ sessionId }, parts) => listRewindPoints(openSession(sessionId, parts)),
  },
  "session.previewRewind": {
    reads: { sessionId: readText, eventId: readText },
    onlyReads: true,
    run: ({ sessionId, eventId }, parts) => previewRewind(openSession(sessionId, parts), required(eventId, "eventId")),
  },
  "session.rewind": {
    reads: { sessionId: readText, eventId: readText, restoreFiles: readFlag },
    run: ({ sessionId, eventId, restoreFiles }, parts) =>
      rewindSession(openSession(sessionId, parts), required(eventId, "eventId"), restoreFiles === true, parts.watched.blobs),
  },
  "session.listCheckpoints": {
    reads: { sessionId: readText },
    onlyReads: true,
    run: ({ sessionId }, parts) => listCheckpoints(openSession(sessionId, parts)),
  },
  "session.readCheckpoint": {
    reads: { sessionId: readText, number: readPositive },
    onlyReads: true,
    async run({ sessionId, number }, parts) {
      const found = await readCheckpoint(openSession(sessionId, parts), required(number, "number"), parts.watched.blobs);
      if (found !== undefined) return found;
      throw new HostError(
        "CHECKPOINT_UNKNOWN",
        `Session ${JSON.stringify(sessionId)} has no summary ${number}, or its file is gone. session.listCheckpoints lists them.`,
      );
    },
  },
  "session.fork": {
    reads: { sessionId: readText, toEventId: readText },
    async run({ sessionId, toEventId }, { host }) {
      return { sessionId: await host.forkSession(required(sessionId, "sessionId"), toEventId === undefined ? {} : { toEventId }) };
    },
  },
  "session.export": {
    reads: { sessionId: readText },
    onlyReads: true,
    async run({ sessionId }, { watched }) {
      const session = watched.session(sessionId);
      if (session === undefined) throw unknownSession(sessionId);
      return { fileName: `${session.session.id}.jsonl`, text: await session.export() };
    },
  },
  "app.open": {
    reads: { callId: readText },
    run: ({ callId }, { apps }) => apps.open(required(callId, "callId")),
  },
  "app.call": {
    reads: { appId: readText, tool: readText, arguments: readRecord },
    run: ({ appId, tool, arguments: args }, { apps }) => apps.call(required(appId, "appId"), required(tool, "tool"), args ?? {}),
  },
  "app.read": {
    reads: { appId: readText, uri: readText },
    run: ({ appId, uri }, { apps }) => apps.read(required(appId, "appId"), required(uri, "uri")),
  },
  "server.restart": {
    reads: { name: readText },
    async run({ name }, { host }) {
      await host.restartServer(required(name, "name"));
      return done;
    },
  },
  "pin.save": {
    reads: { pin: readPin },
    run: ({ pin }, { pins }) => pins.save(required(pin, "pin")),
  },
  "pin.remove": {
    reads: { pinId: readText },
    async run({ pinId }, { pins }) {
      await pins.remove(required(pinId, "pinId"));
      return done;
    },
  },
  "pin.run": {
    reads: { pinId: readText },
    run: ({ pinId }, { pins }) => pins.run(required(pinId, "pinId")),
  },
  exportCall: {
    reads: { tool: readText, arguments: readRecord },
    onlyReads: true,
    run: ({ tool, arguments: args }, { watched, url }) => exportCall(required(tool, "tool"), args ?? {}, { watched, url }),
  },
  approve: {
    reads: { server: readText, skill: readText, tool: readText },
    async run({ server, skill, tool }, { host }) {
      if ((server === undefined) === (skill === undefined))
        throw new HostError("INSPECTOR_PARAMS", "Name either a server or a skill whose definitions are approved.");
      return { count: server === undefined ? await host.approveSkill(skill!, tool) : await host.approveServer(server, tool) };
    },
  },
};

function openSession(sessionId: string, { host }: FeedRequestParts): Session {
  const found = host.openSessions.find(({ session }) => session.id === sessionId)?.session;
  if (found === undefined) throw unknownSession(sessionId);
  return found;
}

function unknownSession(sessionId: string): HostError {
  return new HostError("SESSION_NOT_FOUND", `Session ${JSON.stringify(sessionId)} is not open.`);
}

/** `range.items[2]` or `["two words"].x` as a JSON pointer (RFC 6901). */
function toPointer(path: string): string {
  const parts = Array.from(path.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g), ([, index, quoted, name]) =>
    quoted === undefined ? (index ?? name!) : (JSON.parse(quoted) as string),
  );
  return parts.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** `readFields` checks only the parameters that are there. */
function required<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new HostError("INSPECTOR_PARAMS", `The parameter "${name}" is missing.`);
  return value;
}

const pinReaders: FieldReaders<FeedRequests["pin.save"]["params"]["pin"]> = {
  id: readText,
  name: readText,
  tool: readText,
  arguments: readRecord,
  isAutomatic: readFlag,
  expect: readRecord,
};

function readPin(value: unknown, path: string): FeedRequests["pin.save"]["params"]["pin"] {
  const pin = fieldsReader(pinReaders)(value, path);
  const { arguments: args = {}, isAutomatic = false } = pin;
  return { ...pin, name: required(pin.name, `${path}.name`), tool: required(pin.tool, `${path}.tool`), arguments: args, isAutomatic };
}

function readScript(value: unknown, path: string): readonly (string | Json)[] {
  if (!Array.isArray(value)) return mustBe(path, "a list of messages");
  return value.map((message: unknown, index) => {
    const place = `${path}[${index}]`;
    if (typeof message === "string") return message;
    const { text, calls } = readRecord(message, place);
    if (text !== undefined && typeof text !== "string") return mustBe(`${place}.text`, "a text");
    if (calls !== undefined && !isCallList(calls)) return mustBe(`${place}.calls`, "a list of { name, args }");
    return { ...(text !== undefined && { text }), ...(calls !== undefined && { calls }) };
  });
}

function isCallList(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((call) => isRecord(call) && typeof call["name"] === "string" && (call["args"] === undefined || isRecord(call["args"])))
  );
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Logger, LogLevel } from "../../src/base/logger.ts";
import { createCatalogMemo } from "../../src/session/catalog/assemble-catalog.ts";
import type { CatalogSource } from "../../src/session/catalog/tool-catalog.ts";
import type { SessionEnvironment } from "../../src/session/environment.ts";
import type { SessionEventType, ToolRequest } from "../../src/session/history/event-types.ts";
import type { RecordedEvent } from "../../src/session/history/events.ts";
import type { PromptAndResourceSource } from "../../src/session/prompts-resources/prompts-and-resources.ts";
import { createSession, type Session } from "../../src/session/session.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { createTool } from "../../src/tools/create/create-tool.ts";
import type { ToolLike } from "../../src/tools/define/define-tool.ts";
import type { Tool, ToolKind } from "../../src/tools/tool.ts";
import { approveAll } from "../../src/tools/tool.ts";
import type { SkillEntry } from "../../src/tools/tool-source.ts";

/** A tool as a source of the given kind would publish it. */
export function toolOf(kind: ToolKind, source: string, tool: ToolLike, nativeName: string = tool.name, identity = `test ${source}`): Tool {
  return createTool(tool, { kind, source, nativeName, ...(kind !== "external" && { identity }) });
}

export function sourceOf(kind: ToolKind, id: string, ...tools: ToolLike[]): CatalogSource {
  return { kind, id, tools: tools.map((tool) => toolOf(kind, id, tool)) };
}

/** The same tool from another source, which may take any name but not another identity. */
export function impostorOf(kind: ToolKind, id: string, ...tools: ToolLike[]): CatalogSource {
  return { kind, id, tools: tools.map((tool) => toolOf(kind, id, tool, tool.name, `elsewhere ${id}`)) };
}

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface TestEnvironment extends SessionEnvironment {
  readonly lines: LogLine[];
  readonly folder: string;
  readonly released: boolean;
  /** How often a catalog was requested. */
  readonly assemblies: number;
  /** Replaces the sources and notifies sessions. */
  publish(...sources: CatalogSource[]): void;
  /** Replaces the skills and notifies sessions. */
  publishSkills(...skills: SkillEntry[]): void;
  /** Replaces prompts and resources and notifies sessions. */
  publishOffers(...sources: PromptAndResourceSource[]): void;
  /** Makes the next catalogs fail with this error. */
  failWith(error: Error | undefined): void;
  /** Makes `ready` wait until the promise settles. */
  readyWhen(promise: Promise<void>): void;
}

export function createTestEnvironment(...initial: CatalogSource[]): TestEnvironment {
  const folder = mkdtempSync(join(tmpdir(), "session-test-"));
  // Hooks of this module would apply to the first file that imports it, because files share modules.
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const memo = createCatalogMemo();
  const listeners = new Set<() => void>();
  const lines: LogLine[] = [];
  let sources: readonly CatalogSource[] = initial;
  let skills: readonly SkillEntry[] = [];
  let offers: readonly PromptAndResourceSource[] = [];
  let failure: Error | undefined;
  let ready: Promise<void> = Promise.resolve();
  const state = { released: false, assemblies: 0 };
  return {
    lines,
    folder,
    get released() {
      return state.released;
    },
    get assemblies() {
      return state.assemblies;
    },
    log: recordingLogger(lines),
    defaults: { sessionId: "session-1", workingDirectory: folder },
    catalog(view, pushed) {
      state.assemblies++;
      if (failure) throw failure;
      const clients = pushed.map(({ tools, diagnostics }, index) => ({ kind: "external" as const, id: String(index), tools, diagnostics }));
      return memo([...sources, ...clients], view);
    },
    skills: () => skills,
    offerSources: () => offers,
    subscribe(listener) {
      const own = (): void => listener();
      listeners.add(own);
      return { [Symbol.dispose]: () => void listeners.delete(own) };
    },
    adopt() {},
    async ready(signal) {
      signal.throwIfAborted();
      await ready;
    },
    sessionDirectory: (id) => join(folder, id),
    release() {
      state.released = true;
    },
    publish(...next) {
      sources = next;
      for (const listener of listeners) listener();
    },
    publishSkills(...next) {
      skills = next;
      for (const listener of listeners) listener();
    },
    publishOffers(...next) {
      offers = next;
      for (const listener of listeners) listener();
    },
    failWith(error) {
      failure = error;
    },
    readyWhen(promise) {
      ready = promise;
    },
  };
}

/** A session over an environment that ends after the test. By default every call is allowed. */
export function openSession(environment: TestEnvironment = createTestEnvironment(), options: SessionOptions = {}): Session {
  // Messages are compared with what was sent; tests of the date ask for it.
  const session = createSession({ onPermissionRequest: approveAll, currentDateTime: false, ...options }, environment);
  onTestFinished(() => session.disconnect());
  return session;
}

/** A session with these tools of its own. */
export function sessionWith(tools: readonly ToolLike[], options: SessionOptions = {}): Session {
  return openSession(createTestEnvironment(), { tools, ...options });
}

export function recordEvents(session: Session, ...types: string[]): RecordedEvent[] {
  const events: RecordedEvent[] = [];
  session.on((event) => {
    if (types.length === 0 || types.includes(event.type)) events.push(event);
  });
  return events;
}

/** The data of an `assistant.message` with this text. */
export function answerData(content: string, more: { readonly messageId?: string; readonly toolRequests?: readonly ToolRequest[] } = {}) {
  return { messageId: "m", interactionId: "i", turnId: "0", model: "fake-model", toolRequests: [], content, ...more };
}

/** Settles with the next event of a type. */
export function nextEvent(session: Session, type: SessionEventType): Promise<RecordedEvent> {
  return new Promise((resolve) => {
    const end = session.on(type, (event) => {
      end();
      resolve(event);
    });
  });
}

/** A promise with its resolve and reject functions. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** An object with its own `then`. */
export function withThen(descriptor: PropertyDescriptor): object {
  // biome-ignore lint/suspicious/noThenProperty: what handlers return may have one, and that is what is tested.
  return Object.defineProperty({}, "then", descriptor);
}

/** Runs every pending microtask. */
export function settleMicrotasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function recordingLogger(lines: LogLine[]): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, data: object = {}): void =>
      void lines.push({ level, message, data: { ...data } });
  return { error: at("error"), warning: at("warning"), info: at("info"), debug: at("debug"), enabled: () => true };
}

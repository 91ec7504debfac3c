import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PermissionAsk, Session, SessionOptions, ToolLike } from "skillhost";
import {
  type AgentTurn,
  type LanguageServer,
  type LanguageServerOptions,
  languageServer,
  type SendOptions,
} from "skillhost/plugins/language-server";
import { createTestHost, type TestHost } from "skillhost/testing";
import type { ScriptedToolCall } from "../scripted-model.ts";
import { type LoopbackBackend, startLoopbackBackend } from "./loopback-backend.ts";
import type { DoubleFaults } from "./server-double.ts";

export interface BridgeOptions {
  readonly tools?: readonly ToolLike[];
  /** True when the session has the tools of an editor. */
  readonly editor?: boolean;
  readonly skills?: string;
  readonly session?: SessionOptions;
  readonly options?: LanguageServerOptions;
  /** Flags for the double; the real server does not know them. */
  readonly faults?: DoubleFaults & { readonly chunk?: number };
  readonly isSignedOut?: boolean;
}

/** A host with a session, a language server that uses its tools, and a loopback double of GitHub's backend. */
export class Bridge implements AsyncDisposable {
  readonly folder: string;
  readonly backend: LoopbackBackend;
  readonly session: Session;
  readonly agent: LanguageServer;
  /** The permission requests that the user received. */
  readonly asked: PermissionAsk[];
  readonly host: TestHost["host"];
  readonly #test: TestHost;
  readonly #root: string;

  private constructor(parts: Pick<Bridge, "folder" | "backend" | "agent" | "asked"> & { readonly test: TestHost; readonly root: string }) {
    const { folder, backend, agent, asked, test, root } = parts;
    this.folder = folder;
    this.backend = backend;
    this.session = test.session;
    this.host = test.host;
    this.agent = agent;
    this.asked = asked;
    this.#test = test;
    this.#root = root;
  }

  static async start(server: string, given: BridgeOptions = {}): Promise<Bridge> {
    const { tools = [], editor = false, skills, session, options, faults = {}, isSignedOut = false } = given;
    const root = realpathSync(mkdtempSync(join(tmpdir(), "skillhost-bridge-")));
    const [folder, home] = [join(root, "workspace"), join(root, "home")];
    mkdirSync(folder);
    mkdirSync(home);
    const backend = await startLoopbackBackend();
    if (isSignedOut) backend.refuse();
    const asked: PermissionAsk[] = [];
    const test = await createTestHost({
      plugins: [{ use: "skillhost/plugins/workspace-tools", config: { presentation: editor ? "editor" : "copilot" } }, languageServer],
      workingDirectory: folder,
      skillDirectories: skills === undefined ? [] : [skills],
      watch: skills !== undefined,
      session: {
        tools,
        toolSearch: { enabled: false },
        availableTools: editor ? ["builtin:*", "custom:*", "skill:*"] : ["custom:*", "skill:*"],
        onPermissionRequest: (ask) => {
          asked.push(ask);
          return { kind: "approve-once" };
        },
        ...session,
      },
    });
    const environment = {
      ...backend.environment(home),
      ...(isSignedOut && { GH_COPILOT_TOKEN: "" }),
      DOUBLE_FAULTS: JSON.stringify(faults),
    };
    try {
      const agent = await languageServer.connect(test.session, { server, environment, ...options });
      return new Bridge({ folder, backend, agent, asked, test, root });
    } catch (error) {
      await test.close();
      await backend[Symbol.asyncDispose]();
      rmSync(root, { recursive: true, force: true, maxRetries: 3 });
      throw error;
    }
  }

  /** Runs a turn in which the model makes several calls in one message, then answers. */
  async turn(calls: readonly (readonly [name: string, args?: object])[], options: SendOptions = {}): Promise<AgentTurn> {
    const toolCalls: ScriptedToolCall[] = calls.map(([name, args = {}], index) => ({ id: `call-${index}`, name, arguments: args }));
    if (toolCalls.length > 0) this.backend.answer({ toolCalls });
    this.backend.answer({ content: "Done." });
    return this.agent.send("Do it.", options);
  }

  /** The tool results in the last request to the model. */
  get results(): readonly string[] {
    const { messages = [] } = this.backend.asked.at(-1) ?? {};
    return messages.filter(({ role }: { role: string }) => role === "tool").map(({ content }: { content: string }) => content);
  }

  /** The names of the tools in the last request to the model. */
  get offered(): readonly string[] {
    return (this.backend.asked.at(-1)?.tools ?? []).map((tool: { function: { name: string } }) => tool.function.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#test.close();
    await this.backend[Symbol.asyncDispose]();
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 3 });
  }
}

import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type CompiledSources, compileSources } from "../../compiled-sources.ts";
import { chatAnswer, type ModelScript, type ScriptedModel, type ScriptedReply, startScriptedModel } from "../../doubles/scripted-model.ts";

// biome-ignore lint/suspicious/noExplicitAny: the SDK has a lock file of its own, so its types are not always there
type Sdk = any;

const here = dirname(fileURLToPath(import.meta.url));

/** The official SDK from npm, installed by the lock file beside this one when it is not there yet. */
export async function loadSdk(): Promise<Sdk> {
  const entry = join(here, "node_modules/@github/copilot-sdk/dist/index.js");
  if (!existsSync(entry)) execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: here, stdio: "pipe" });
  return import(pathToFileURL(entry).href);
}

/** The command line, compiled once for all tests of a file. */
export function compileRuntime(): CompiledSources & { readonly bin: string } {
  const compiled = compileSources();
  const bin = compiled.path("src/cli/bin.ts");
  chmodSync(bin, 0o755);
  return Object.assign(compiled, { bin });
}

/** A folder to work in, with a model beside it. */
export class Bench implements AsyncDisposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), "skillhost-sdk-"));
  readonly model: ScriptedModel;
  readonly #clients: Sdk[] = [];
  readonly #sdk: Sdk;
  readonly #bin: string;

  private constructor(sdk: Sdk, bin: string, model: ScriptedModel) {
    this.#sdk = sdk;
    this.#bin = bin;
    this.model = model;
    // No bundled plugins: what the model is offered is what the test brings.
    this.write("skillhost.json", "{}");
  }

  static async start(sdk: Sdk, { bin }: { readonly bin: string }, script?: ModelScript): Promise<Bench> {
    return new Bench(sdk, bin, await startScriptedModel(script));
  }

  write(file: string, text: string): void {
    const path = join(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  says(...replies: readonly (ScriptedReply | string)[]): void {
    this.model.answer(...replies.map((reply) => chatAnswer(typeof reply === "string" ? { content: reply } : reply)));
  }

  /** The newest request to the model. */
  get asked(): Sdk {
    return this.model.requests.findLast(({ method }) => method === "POST")?.body;
  }

  /** A client whose runtime is skillhost. */
  client(options: object = {}, args: readonly string[] = []): Sdk {
    const connection = this.#sdk.RuntimeConnection.forStdio({ path: this.#bin, args });
    return this.own(new this.#sdk.CopilotClient({ ...this.options, connection, ...options }));
  }

  tcpClient(options: object = {}): Sdk {
    return this.own(
      new this.#sdk.CopilotClient({ ...this.options, connection: this.#sdk.RuntimeConnection.forTcp({ path: this.#bin, ...options }) }),
    );
  }

  own(client: Sdk): Sdk {
    this.#clients.push(client);
    return client;
  }

  get options(): object {
    const { GH_TOKEN: _gh, GITHUB_TOKEN: _github, ...environment } = process.env;
    return {
      workingDirectory: this.folder,
      baseDirectory: join(this.folder, ".home"),
      logLevel: "error",
      gitHubToken: "token-of-the-test",
      env: { ...environment, COPILOT_API_URL: this.model.url },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client.stop().catch(() => client.forceStop());
    await this.model.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function calling(name: string, args: object = {}, id = "call-1"): ScriptedReply {
  return { toolCalls: [{ id, name, arguments: args }] };
}

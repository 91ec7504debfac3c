import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { commandsOf, readSamples, splitCommand } from "../../docs/markdown-samples.ts";
import { isProgram, modelReplies, writeProject } from "../../docs/sample-project.ts";
import { chatAnswer, chatStreamAnswer, startScriptedModel } from "../../doubles/scripted-model.ts";
import { installManager, managers } from "./managers.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const windows = process.platform === "win32";
const samples = readSamples(join(root, "README.md"), "README.md");

let packing: string;
let tarball: string;

beforeAll(() => {
  packing = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-packed-")));
  const npm = (...args: string[]): string => execFileSync("npm", args, { cwd: root, encoding: "utf8", shell: windows, stdio: "pipe" });
  npm("run", "--silent", "build");
  const [packed] = JSON.parse(npm("pack", "--json", "--pack-destination", packing)) as { filename: string }[];
  tarball = join(packing, packed!.filename);
});
afterAll(() => rmSync(packing, { recursive: true, force: true }));

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder with skillhost in it or on the PATH, and its own home. */
class UserFolder {
  readonly folder: string;
  readonly #bin: string;
  readonly #env: Record<string, string | undefined>;

  constructor(folder: string, bin: string, home: string) {
    this.folder = folder;
    this.#bin = bin;
    const { NODE_OPTIONS: _options, VITEST: _vitest, NODE_PATH: _path, ...env } = process.env;
    this.#env = { ...env, SKILLHOST_HOME: home, PATH: [bin, process.env["PATH"]].join(delimiter), NO_COLOR: "1" };
  }

  async run(command: string, args: readonly string[], { env = {}, stdin = "" } = {}): Promise<Ran> {
    const file = command === "skillhost" ? join(this.#bin, command) : command;
    const child = spawn(file, args, { cwd: this.folder, env: { ...this.#env, ...env }, shell: windows });
    child.stdin.end(stdin);
    const closed = once(child, "close") as Promise<[number | null]>;
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = await closed;
    return { code, stdout, stderr };
  }

  /** Runs a command line of a shell block and expects it to succeed. */
  async line(line: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const [command, ...args] = splitCommand(line.replace(/^npx /, ""));
    const { code, stdout, stderr } = await this.run(command!, args, { env });
    expect([code, code === 0 ? "" : `${line}\n${stdout}${stderr}`]).toEqual([0, ""]);
    return stdout;
  }
}

for (const manager of managers) {
  test(`README.md's commands work in an empty folder with ${manager.name}`, async ({ skip }) => {
    const scratch = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-readme-")));
    onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
    const manages = installManager(manager, scratch);
    if (manages === undefined) return skip("npm could not install this package manager.");
    const folder = join(scratch, "empty");
    mkdirSync(folder);
    const user = new UserFolder(folder, manager.install({ folder, scratch, tarball, bin: manages }), join(scratch, "home"));
    writeProject(
      folder,
      samples.filter((sample) => sample.file !== undefined || isProgram(sample)),
      (text) => text,
    );

    for (const sample of samples) {
      // The first block is for a checkout, the second creates another project: scripts/check-package.mjs does so.
      if (sample.language !== "sh" || /^npm (?:ci|create)/.test(sample.text)) continue;
      const replies = modelReplies(sample);
      await using model = await startScriptedModel(({ body }, number) => {
        const reply = replies[number];
        return reply && (body.stream === true ? chatStreamAnswer(reply) : chatAnswer(reply));
      });
      for (const command of commandsOf(sample)) {
        if (command.startsWith("export ")) continue;
        const said = await user.line(command, { OPENAI_BASE_URL: `${model.url}/v1` });
        if (command.includes(" call ")) expect(said).toContain('"city":"Oslo"');
        if (command.includes(" check ")) expect(said).toContain("1 skill and 1 tool checked");
        if (command.includes(" run ")) expect(said).toContain("It is 21 degrees in Oslo.");
      }
    }
    expect(await user.line("skillhost list")).toContain("1 skill, 1 tool");

    const programs = samples.filter(isProgram);
    expect(programs).toHaveLength(1);
    if (manager.isLocal) {
      for (const { text: source } of programs) {
        writeFileSync(
          join(folder, "program.mjs"),
          source.replace("await host.close();", "console.log(result.textResultForLlm);\nawait host.close();"),
        );
        const { code, stdout, stderr } = await user.run(process.execPath, ["program.mjs"]);
        expect([code, stdout, stderr]).toEqual([0, '{"city":"Oslo","temperature":21,"units":"celsius"}\n', ""]);
      }
    }

    const printed = await user.line("skillhost connect claude-code --allow get_weather --print");
    const { mcpServers } = JSON.parse(printed) as { mcpServers: { skillhost: { command: string; args: string[] } } };
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
    const messages = [
      { jsonrpc: "2.0", id: 1, method: "initialize", params },
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} },
    ];
    const { command, args } = mcpServers.skillhost;
    const served = await user.run(command, args, { stdin: messages.map((message) => `${JSON.stringify(message)}\n`).join("") });
    expect(served.stdout).toContain('"name":"get_weather"');

    const made = await user.run("skillhost", ["new", "skill", "greeter"]);
    expect(made.code).toBe(0);
    expect(made.stderr.includes("npm install --save-dev skillhost, then node --test")).toBe(!manager.isLocal);
    if (manager.isLocal) await user.line(/node --test \S+/.exec(made.stderr)![0]);
    expect(await user.line("skillhost check")).toContain("2 skills");
  });
}

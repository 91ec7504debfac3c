import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The files of a run, and the model of what they must lead to. */
export class World {
  /** The skills that exist, by name, with the version that was valid last. Broken ones keep it. */
  skills = new Map();
  #random;
  #version = 0;

  /** In a folder of its own, or in this one. */
  constructor(random, base = mkdtempSync(join(tmpdir(), "skillhost-endurance-"))) {
    this.#random = random;
    this.base = base;
    this.folder = join(this.base, "skills");
    mkdirSync(this.folder);
    this.server = join(this.base, "server.mjs");
    writeFileSync(this.server, serverSource);
  }

  toolOf(name) {
    return `${name.replaceAll("-", "_")}_answer`;
  }

  pick() {
    const names = [...this.skills.keys()];
    return names[this.#random(names.length)];
  }

  add(name) {
    mkdirSync(join(this.folder, name, "tools"), { recursive: true });
    writeFileSync(join(this.folder, name, "SKILL.md"), `---\nname: ${name}\ndescription: The skill ${name} of a long run.\n---\nAnswer.\n`);
    this.save(name);
  }

  /** Saves a new valid version in one of the ways that editors save, and returns it. */
  save(name) {
    const version = ++this.#version;
    const file = join(this.folder, name, "tools/answer.ts");
    const text = source(this.toolOf(name), version);
    const way = this.#random(4);
    // In the helper, in place, by rename, or in two parts, of which the first does not parse.
    writeFileSync(join(this.folder, name, "tools/_version.ts"), `export const version: number = ${version};\n`);
    if (way === 1) writeFileSync(file, text);
    else if (way === 2) {
      writeFileSync(`${file}.tmp`, text);
      renameSync(`${file}.tmp`, file);
    } else {
      if (way === 3) writeFileSync(file, text.slice(0, text.length >> 1));
      writeFileSync(file, text);
    }
    this.skills.set(name, { version, isBroken: false });
    return version;
  }

  /** Saves something that cannot be loaded: the version before must still answer. */
  break(name) {
    const texts = ["export default defineTool(", "import './missing.ts';", "throw new Error('broken');", "for (const a of ["];
    writeFileSync(join(this.folder, name, "tools/answer.ts"), texts[this.#random(texts.length)]);
    this.skills.set(name, { ...this.skills.get(name), isBroken: true });
  }

  remove(name) {
    rmSync(join(this.folder, name), { recursive: true });
    this.skills.delete(name);
  }

  close() {
    rmSync(this.base, { recursive: true, force: true, maxRetries: 5 });
  }
}

function source(tool, version) {
  return `import { defineTool } from "skillhost";
import { version } from "./_version.ts";
const parameters = { type: "object", properties: { x: { type: "string" } }, required: ["x"] } as const;
export const answer = defineTool("${tool}", { description: "Answers with its version.", skipPermission: true, parameters, handler: ({ x }: any) => "${tool} " + version + " " + x });
export const loops = defineTool("${tool}_misbehaves", {
  description: "Misbehaves.", skipPermission: true, timeout: 200, parameters,
  handler: ({ x }: any) => { if (x === "loops") for (;;); if (x === "throws") throw new Error("as asked"); if (x === "exits") process.exit(3); if (x === "aborts") process.abort(); if (x === "crashes") process.kill(process.pid, "SIGSEGV"); return "${version}"; },
});
`;
}

/** A server of the Model Context Protocol on standard input and output, without dependencies. */
const serverSource = `import { createInterface } from "node:readline";
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "endurance", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "pid", description: "Its process.", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: String(process.pid) }] }),
  ping: () => ({}),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = answers[method]?.(params);
  const reply = result === undefined ? { error: { code: -32601, message: "unknown" } } : { result };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...reply }) + "\\n");
});
`;

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Diagnostic } from "../../../src/base/diagnostic.ts";
import { parseAgentPluginsMcp } from "../../../src/formats/plugins/agent-plugins-mcp.ts";
import { parseTomlCommand } from "../../../src/formats/plugins/command-file.ts";
import { parseHookConfig } from "../../../src/formats/plugins/hook-config.ts";
import { parseMarketplace } from "../../../src/formats/plugins/marketplace.ts";
import type { BundleDialect } from "../../../src/formats/plugins/plugin-dialects.ts";
import { parsePluginManifest } from "../../../src/formats/plugins/plugin-manifest.ts";
import { rounds } from "../../rounds.ts";

const runs = { numRuns: rounds(150, 5_000) };
const dialects: readonly BundleDialect[] = ["agent-plugins", "claude", "copilot", "codex", "gemini", "cursor", "openclaw"];
const pieces = [
  "",
  " ",
  "\n",
  ",",
  ":",
  '"',
  "'",
  "[",
  "]",
  "{",
  "}",
  "7",
  "null",
  "true",
  "\\",
  "\0",
  "../",
  "./",
  "__proto__",
  "constructor",
  "\uD800",
  "${PLUGIN_ROOT}",
  '"hooks":',
  "1e999",
];

const texts = {
  manifest: [
    '{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"a.b","author":{"name":"A"},"keywords":["k"],"extensions":{}}',
    '{"name":"p","version":"1","skills":["./a","b"],"hooks":{"Stop":[{"hooks":[{"command":"x"}]}]},"mcpServers":["./m.json",{"x":{}}],"settings":[{"envVar":"A"}]}',
  ],
  hooks: [
    '{"version":1,"hooks":{"PreToolUse":[{"matcher":"A|B","hooks":[{"type":"command","command":"x","args":["y"],"timeout":5,"async":true}]}],"preToolUse":[{"bash":"b","env":{"A":"1"}}],"BeforeTool":[{"hooks":[{"command":"x"}]}]}}',
  ],
  marketplace: [
    '{"name":"m","owner":{"name":"O"},"metadata":{"pluginRoot":"./p"},"plugins":[{"name":"a","source":"x"},{"name":"b","source":{"source":"github","repo":"o/r"}},{"name":"c","source":{"source":"npm","package":"p"}}]}',
  ],
  servers: [
    '{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"a":{"type":"stdio","command":"./x","args":["${PLUGIN_DATA}"],"cwd":"./y"},"b":{"type":"sse","url":"https://x.example","headers":{"A":"1"}}}}',
  ],
  toml: ['description = "d\\n"\nprompt = """\na {{args}} \\\n  b"""\n[t]\nx = 1', "prompt = '''x''y'''\nn = [1, 2]"],
};

const mutated = (of: readonly string[]) =>
  fc
    .tuple(fc.constantFrom(...of), fc.array(fc.tuple(fc.nat(300), fc.nat(10), fc.constantFrom(...pieces)), { minLength: 1, maxLength: 4 }))
    .map(([text, cuts]) =>
      cuts.reduce(
        (now, [from, length, put]) => now.slice(0, from % (now.length + 1)) + put + now.slice((from % (now.length + 1)) + length),
        text,
      ),
    );

function expectSound(diagnostics: readonly Diagnostic[]): void {
  expect(diagnostics.length).toBeLessThanOrEqual(110);
  for (const { code, message } of diagnostics) {
    expect(code).toMatch(/^[A-Z][A-Z0-9_]+$/);
    expect(message.length).toBeLessThan(2_500);
  }
}

test("every text is a manifest or refused with a reason", () => {
  fc.assert(
    fc.property(mutated(texts.manifest), fc.constantFrom(...dialects), (text, dialect) => {
      const { manifest, diagnostics } = parsePluginManifest(text, { file: "f", dialect, folderName: "f" });
      expectSound(diagnostics);
      if (manifest === undefined) expect(diagnostics.some(({ severity }) => severity === "error")).toBe(true);
      else expect(manifest.name).toMatch(/^[a-zA-Z0-9][\w.-]{0,63}$/);
    }),
    runs,
  );
});

test("every text gives hooks that have something to start, and no more than are taken", () => {
  fc.assert(
    fc.property(mutated(texts.hooks), fc.constantFrom(...dialects), (text, dialect) => {
      const { hooks, diagnostics } = parseHookConfig(text, { file: "f", dialect });
      expectSound(diagnostics);
      for (const { timeout, program } of hooks) {
        expect(timeout).toBeGreaterThan(0);
        expect(program.kind === "program" ? program.command : (program.bash ?? program.powershell)).toMatch(/\S/);
      }
    }),
    runs,
  );
});

test("every text gives servers, plugins and commands, or none", () => {
  fc.assert(
    fc.property(mutated(texts.servers), mutated(texts.marketplace), mutated(texts.toml), (servers, marketplace, toml) => {
      const read = parseAgentPluginsMcp(servers, { file: "f", folder: "/p", variables: () => "v" });
      const market = parseMarketplace(marketplace, "f");
      const command = parseTomlCommand(toml, "f", {});
      for (const { diagnostics } of [read, market, command]) expectSound(diagnostics);
      expect(typeof (command.command?.expand("x") ?? "")).toBe("string");
    }),
    runs,
  );
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { parseMcpConfig } from "../../../src/formats/mcp/mcp-config.ts";
import { adviseServers, createVariableLookup, type McpDialect } from "../../../src/formats/mcp/mcp-dialects.ts";
import { type ParsedServer, parseServerSpec, toServerConfig } from "../../../src/formats/mcp/parse-server-spec.ts";
import { rounds } from "../../rounds.ts";

const runs = { numRuns: rounds(200, 5_000) };
const dialects: readonly McpDialect[] = [
  "session",
  "skillhost",
  "skill",
  "agent",
  "claude",
  "copilot",
  "vscode",
  "cursor",
  "gemini",
  "codex",
  "openclaw",
  "agent-plugins",
];
const dialect = fc.constantFrom(...dialects);

const keys = fc.constantFrom(
  "type",
  "transport",
  "command",
  "args",
  "env",
  "env_vars",
  "cwd",
  "url",
  "httpUrl",
  "serverUrl",
  "headers",
  "oauth",
  "clientId",
  "scopes",
  "callbackPort",
  "tools",
  "excludeTools",
  "timeout",
  "tool_timeout_sec",
  "disabled",
  "enabled",
  "bearer_token_env_var",
  "mcpServers",
  "servers",
  "mcp",
  "inputs",
  "id",
  "__proto__",
  "constructor",
  "x",
);
const scalar = fc.oneof(
  fc.constantFrom(
    "stdio",
    "http",
    "sse",
    "https://a.example/",
    "",
    "*",
    "${A}",
    "${A:-b}",
    "${input:A}",
    "$A",
    "${env:A}",
    "${{ secrets.A }}",
    "${",
    "a\0b",
    "a\r\nb",
    "→",
    "YOUR_KEY",
  ),
  fc.constantFrom(0, -1, 5, 1e300, Number.NaN, true, false, null, undefined),
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, maxDepth: 1 }),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(keys, tie("value"), { maxKeys: 6 }),
  ),
}));
const entry = fc.dictionary(keys, value, { maxKeys: 8 });

function expectSound(server: ParsedServer, hasErrors: boolean): void {
  if ((server.state === "refused") !== hasErrors) expect.fail("refused without an error, or an error without being refused");
  if (server.state !== "ready") return;
  const { spec } = server;
  const texts =
    spec.type === "stdio"
      ? [spec.command, ...spec.args, ...Object.values(spec.env), spec.cwd ?? ""]
      : [spec.url, ...Object.values(spec.headers)];
  if (texts.some((text) => typeof text !== "string" || text.includes("\0"))) expect.fail("an invalid string");
  if (spec.type === "stdio" ? spec.command.trim() === "" : !/^https?:/i.test(spec.url)) expect.fail("ready, and cannot be started");
  if (spec.type !== "stdio") new Headers(spec.headers);
  if (spec.timeout !== undefined && !(spec.timeout > 0)) expect.fail("an invalid timeout");
}

test("parseServerSpec reads or refuses every value, with an error exactly when it refuses", () => {
  fc.assert(
    fc.property(fc.oneof(entry, value), dialect, fc.constantFrom("direct", "indirect"), (given, of, envValueMode) => {
      const variables = createVariableLookup({ environment: { A: "alpha" } });
      const { server, diagnostics } = parseServerSpec("s", given, { dialect: of, envValueMode, variables, folder: "/f" });
      expectSound(
        server,
        diagnostics.some(({ severity }) => severity === "error"),
      );
      if (server.state !== "ready") return;
      adviseServers([server.spec], { A: "alpha" });
      const again = parseServerSpec("s", toServerConfig(server.spec), { dialect: "session" });
      expect(again.server).toEqual(server);
    }),
    runs,
  );
});

test("parseMcpConfig takes every value and every text", () => {
  const texts = fc.oneof(
    value.map((given) => safeJson(given)),
    fc
      .tuple(
        entry.map((given) => safeJson({ mcpServers: { s: given } })),
        fc.nat(200),
        fc.constantFrom("", "}", ",", "//", "/*", '"', "\0"),
      )
      .map(([text, at, put]) => text.slice(0, at % (text.length + 1)) + put + text.slice(at % (text.length + 1))),
    fc.string({ maxLength: 60 }),
  );
  fc.assert(
    fc.property(fc.oneof(texts, entry, fc.dictionary(keys, entry, { maxKeys: 3 })), fc.option(dialect, { nil: undefined }), (given, of) => {
      const { servers, diagnostics } = parseMcpConfig(given, { file: "/p/mcp.json", dialect: of });
      const refused = servers.filter(({ state }) => state === "refused").length;
      if (refused > diagnostics.filter(({ severity }) => severity === "error").length) expect.fail("refused without a reason");
      for (const server of servers) expectSound(server, server.state === "refused");
    }),
    runs,
  );
});

test("no secret of the environment comes out in a diagnostic or a reason", () => {
  const secret = "hunter2-correct-horse";
  const nasty = fc.constantFrom(
    secret,
    `${secret}\n`,
    `https://${secret}@a.example/`,
    `ftp://${secret}`,
    `→${secret}`,
    `${secret}\0`,
    `\${B}${secret}`,
  );
  fc.assert(
    fc.property(entry, dialect, nasty, fc.constantFrom("direct", "indirect"), (given, of, hidden, envValueMode) => {
      const variables = (): string => hidden;
      const { server, diagnostics } = parseServerSpec("s", given, { dialect: of, variables, envValueMode });
      const reported = [...diagnostics, ...(server.state === "unconfigured" ? [server.server.reason] : [])];
      if (server.state === "ready") reported.push(...adviseServers([server.spec], {}));
      if (JSON.stringify(reported).includes(secret)) expect.fail("a secret came out");
    }),
    runs,
  );
});

function safeJson(given: unknown): string {
  try {
    return JSON.stringify(given) ?? "null";
  } catch {
    // BigInt has no JSON.
    return "null";
  }
}

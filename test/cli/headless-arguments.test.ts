import { describe, expect, test } from "vitest";
import { parseHeadlessArguments } from "../../src/cli/headless.ts";

describe("the arguments of a runtime", () => {
  test("a runtime takes its arguments in the form of the Copilot SDK", () => {
    const argv =
      "--headless --no-auto-update --log-level error --stdio --auth-token-env COPILOT_SDK_AUTH_TOKEN --no-auto-login --session-idle-timeout 60 --remote";
    expect(parseHeadlessArguments(argv.split(" "))).toEqual({
      ok: true,
      value: {
        transport: { kind: "stdio" },
        logLevel: "error",
        authTokenVariable: "COPILOT_SDK_AUTH_TOKEN",
        idleTimeoutSeconds: 60,
        allowsNoToken: false,
        allowsAll: false,
        trusts: false,
        skills: [],
        mcpConfig: [],
        pluginDirectories: [],
      },
    });
  });

  test("a runtime without --stdio listens on a free port if none is named", () => {
    const transportOf = (...argv: string[]): unknown => {
      const parsed = parseHeadlessArguments(["--headless", ...argv]);
      return parsed.ok ? parsed.value.transport : parsed.problem;
    };
    expect(transportOf()).toEqual({ kind: "tcp", port: 0, host: "127.0.0.1" });
    expect(transportOf("--port", "4321")).toEqual({ kind: "tcp", port: 4321, host: "127.0.0.1" });
    expect(transportOf("--port", "99999")).toContain("--port must be an integer");
    expect(transportOf("--port", "-1")).toContain("--port");
    expect(transportOf("--stdio", "--port", "1")).toContain("exclude each other");
  });

  test("the port of an inspector may be left out", () => {
    const inspectOf = (...argv: string[]): unknown => {
      const parsed = parseHeadlessArguments(["--headless", ...argv]);
      return parsed.ok ? parsed.value.inspect : parsed.problem;
    };
    expect([inspectOf(), inspectOf("--inspect"), inspectOf("--inspect", "--stdio"), inspectOf("--inspect", "4100")]).toEqual([
      undefined,
      0,
      0,
      4100,
    ]);
    expect(inspectOf("--inspect", "70000")).toContain("--inspect must be an integer");
  });

  test("a runtime may omit the token on loopback addresses only", () => {
    const allowed = (...argv: string[]): unknown => {
      const parsed = parseHeadlessArguments(["--headless", "--no-token", ...argv]);
      return parsed.ok ? parsed.value.allowsNoToken : parsed.problem;
    };
    for (const host of ["127.0.0.1", "localhost", "::1", "[::1]"]) expect([host, allowed("--host", host)]).toEqual([host, true]);
    for (const host of ["0.0.0.0", "::", "", "192.168.1.2", "example.com", "127.0.0.1.nip.io"])
      expect([host, allowed("--host", host)]).toEqual([host, expect.stringContaining("--no-token is allowed only for loopback addresses")]);
  });

  test("runtime arguments may follow our options, and repeat", () => {
    const argv = [
      "--yolo",
      "--plugin-dir",
      "a",
      "--plugin-dir",
      "b",
      "--skills",
      "s",
      "--config",
      "c.json",
      "--mcp-config",
      "m.json",
      "--headless",
      "--stdio",
    ];
    expect(parseHeadlessArguments(argv)).toMatchObject({
      ok: true,
      value: { allowsAll: true, pluginDirectories: ["a", "b"], skills: ["s"], config: "c.json", mcpConfig: ["m.json"] },
    });
  });

  test.each([
    [["--nonexistent-flag-for-testing"], "nonexistent-flag-for-testing"],
    [["extra"], "extra"],
    [["--log-level", "loud"], "none, error, warning, info, debug, all"],
    [["--log-level"], "log-level"],
    [["--session-idle-timeout", "soon"], "--session-idle-timeout"],
  ])("an unknown argument is named: %j", (argv, named) => {
    const parsed = parseHeadlessArguments(["--headless", "--stdio", ...argv]);
    expect(parsed).toEqual({ ok: false, problem: expect.stringContaining(named) });
  });

  test("an unsupported log level of the SDK is replaced by the nearest", () => {
    const levels = ["none", "all", "trace", "default", "warning"].map((level) => parseHeadlessArguments(["--log-level", level]));
    expect(levels.map((parsed) => (parsed.ok ? parsed.value.logLevel : "refused"))).toEqual([
      "error",
      "debug",
      "debug",
      undefined,
      "warning",
    ]);
  });
});

import { describe, expect, test } from "vitest";
import type { RemoteServerSpec } from "../../../src/formats/mcp/mcp-server-spec.ts";
import { parseServerSpec } from "../../../src/formats/mcp/parse-server-spec.ts";
import { readGithubMcpToolConfig, withGithubTools } from "../../../src/mcp/connection/github-tools.ts";

const url = "https://api.githubcopilot.com/mcp/";

function specOf(value: object, name = "s") {
  const { server } = parseServerSpec(name, value, { dialect: "session" });
  if (server.state !== "ready") throw new Error(server.state);
  return server.spec;
}

const headersOf = (config: object, headers: object = {}) => (withGithubTools(specOf({ url, headers }), config) as RemoteServerSpec).headers;

describe("the option becomes the headers of GitHub's server", () => {
  test.each([
    [{}, { "X-MCP-Readonly": "true" }],
    [{ enableAllTools: true }, { "X-MCP-Toolsets": "all" }],
    [{ additionalToolsets: ["actions", "gists", "actions"] }, { "X-MCP-Toolsets": "default,actions,gists", "X-MCP-Readonly": "true" }],
    [{ additionalTools: ["get_me"] }, { "X-MCP-Tools": "get_me", "X-MCP-Readonly": "true" }],
    [
      {
        enableAllTools: true,
        additionalToolsets: ["actions"],
        additionalTools: ["get_me"],
        enableInsidersMode: true,
        disableFormDeferral: true,
      },
      { "X-MCP-Toolsets": "all", "X-MCP-Tools": "get_me", "X-MCP-Insiders": "true", "X-MCP-Features": "mcp_apps_disable_form_deferral" },
    ],
  ])("%j", (config, headers) => {
    expect(headersOf(config)).toEqual(headers);
  });
});

test("it comes on top of what the configuration says by the same headers", () => {
  const own = { Authorization: "Bearer t", "x-mcp-readonly": "false", "x-mcp-toolsets": "repos, issues", "X-MCP-Tools": "get_me" };
  expect(headersOf({ additionalToolsets: ["actions"], additionalTools: ["get_commit"] }, own)).toEqual({
    Authorization: "Bearer t",
    "x-mcp-readonly": "false",
    "x-mcp-toolsets": "repos,issues,actions",
    "X-MCP-Tools": "get_me,get_commit",
  });
});

test("only servers of GitHub's are changed", () => {
  const theirs = [
    specOf({ url }),
    specOf({ url: "https://api.enterprise.githubcopilot.com/mcp" }),
    specOf({ url: "http://localhost:1/" }, "github"),
  ];
  for (const spec of theirs) expect(withGithubTools(spec, {})).toMatchObject({ headers: { "X-MCP-Readonly": "true" } });
  const others = [
    specOf({ url: "https://example.com/mcp/" }),
    specOf({ url: "https://api.githubcopilot.com.evil.example/mcp/" }),
    specOf({ url: "https://evil.example/?https://api.githubcopilot.com/mcp" }),
    specOf({ command: "github-mcp-server" }, "github"),
  ];
  for (const spec of others) expect(withGithubTools(spec, { enableAllTools: true })).toBe(spec);
  for (const spec of theirs) expect(withGithubTools(spec, undefined)).toBe(spec);
});

test.each([
  { additionalTools: ["a,b"] },
  { additionalTools: ["a\r\nEvil: x"] },
  { additionalToolsets: "actions" },
  { enableAllTools: "yes" },
  { all: true },
  5,
])("the option %j is refused", (value) => {
  expect(() => readGithubMcpToolConfig(value, "githubMcpToolConfig")).toThrow();
});

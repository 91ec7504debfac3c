import { describe, expect, test } from "vitest";
import { Params } from "../../../src/servers/copilot/connection/params.ts";
import { parseSessionRequest } from "../../../src/servers/copilot/request/parse-session-request.ts";

function parse(values: object, version: 2 | 3 = 3): ReturnType<typeof parseSessionRequest> {
  return parseSessionRequest(new Params("session.create", values), version);
}

/** The options that a request leads to, by what the client sent. */
const options: readonly (readonly [title: string, sent: object, options: object])[] = [
  ["an empty request has no options", {}, {}],
  ["null counts as absent", { model: null, tools: null, customAgents: null, toolSearch: null }, {}],
  ["options with the same meaning are passed on, right or wrong", { model: "m", skillDirectories: 7 }, { model: "m", skillDirectories: 7 }],
  ["unknown options are dropped", { __proto__: { model: "evil" }, nothing: 1 }, {}],
  [
    "unknown fields of a known object are dropped",
    { toolSearch: { enabled: true, next: 1, deferThreshold: null } },
    { toolSearch: { enabled: true } },
  ],
  ["a value that is not an object is left to the session to refuse", { largeOutput: "big" }, { largeOutput: "big" }],
  ["enableSkills: false disables all skills", { enableSkills: false, disabledSkills: ["one"] }, { disabledSkills: ["*"] }],
  ["forms need a client that shows them", { askUserVariant: "form" }, {}],
  ["forms are used by a client that shows them", { askUserVariant: "form", requestElicitation: true }, { askUserVariant: "form" }],
  [
    "agents keep the fields that a session knows, and null for all tools",
    { customAgents: [{ name: "a", prompt: "p", tools: null, color: "red" }, "odd"] },
    { customAgents: [{ name: "a", prompt: "p", tools: null }, "odd"] },
  ],
];

/** Names of options without effect, by what the client sent. */
const ignored: readonly (readonly [sent: object, names: readonly string[]])[] = [
  [{ enableSessionTelemetry: false, memory: { enabled: false }, canvases: [], contextTier: "default" }, []],
  [{ reasoningSummary: "none", remoteSession: "off", sessionLimits: { aiCredits: null }, expAssignments: {} }, []],
  [{ enableSessionTelemetry: true, memory: { enabled: true }, canvases: [{}] }, ["canvases", "enableSessionTelemetry", "memory"]],
  [{ sessionLimits: { aiCredits: 3 }, reasoningSummary: "auto" }, ["reasoningSummary", "sessionLimits"]],
];

describe("a session request", () => {
  test.each(options)("%s", (_title, sent, expected) => {
    expect(parse(sent).options).toEqual(expected);
  });

  test.each(ignored)("%j names the ignored options %j", (sent, names) => {
    expect(parse(sent).ignored).toEqual(names);
  });

  test("says what the client can do", () => {
    expect(parse({}).capabilities).toEqual({
      hooks: false,
      answersPermissions: false,
      answersUserInput: false,
      answersElicitation: false,
      answersPlans: false,
      rendersApps: false,
      wantsSubAgentStreaming: true,
      commands: [],
      tools: undefined,
    });
    const sent = {
      hooks: true,
      requestElicitation: true,
      requestExitPlanMode: true,
      requestMcpApps: true,
      includeSubAgentStreamingEvents: false,
    };
    const able = { hooks: true, answersElicitation: true, answersPlans: true, rendersApps: true, wantsSubAgentStreaming: false };
    expect(parse(sent).capabilities).toMatchObject(able);
    expect(parse(sent, 2).capabilities).toMatchObject({ ...able, answersElicitation: false, answersPlans: false });
  });

  test("keeps the commands that have a name and the known fields of tools", () => {
    const { commands, tools } = parse({
      commands: [{ name: "deploy", description: 7 }, { name: "" }, { description: "none" }],
      tools: [{ name: "t", description: null, handler: "x" }],
    }).capabilities;
    expect(commands).toEqual([{ name: "deploy", description: "" }]);
    expect(tools).toEqual([{ name: "t" }]);
  });

  test.each([{ managedSettings: { a: 1 } }, { enableManagedSettings: true }])("%j is refused, since it cannot be enforced", (sent) => {
    expect(() => parse(sent)).toThrow(/is not enforced by skillhost. Pass the rules to session.permissions.configure instead/);
  });

  test.each([{ managedSettings: {} }, { enableManagedSettings: false }])("%j asks for nothing that must be enforced", (sent) => {
    expect(parse(sent).ignored).toEqual([]);
  });
});

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Params } from "../../../src/servers/copilot/connection/params.ts";
import { parseSessionRequest } from "../../../src/servers/copilot/request/parse-session-request.ts";

/** The parameters of session.create and session.resume that the SDK's client sends and skillhost reads. */
const read = `additionalDirectories agent askUserVariant availableTools clientName commands continuePendingWork customAgents defaultAgent
  disabledMcpServers disabledSkills disableResume enableCitations enableConfigDiscovery enableFileChangeTracking enableManagedSettings enableSkills
  envValueMode excludedBuiltinAgents excludedTools extensionSdkPath gitHubToken gitHubTokenProviderRegistrationId githubMcpToolConfig hooks
  includeSubAgentStreamingEvents infiniteSessions instructionDirectories largeOutput managedSettings mcpServers model modelCapabilities models
  organizationCustomInstructions pluginDirectories provider providers reasoningEffort requestedEnvironmentVariables requestElicitation requestExitPlanMode requestExtensions
  requestMcpApps requestPermission requestUserInput sessionId skillDirectories streaming systemMessage toolFilterPrecedence toolSearch tools
  workingDirectory`.split(/\s+/);

/** Those without effect, with a value that asks for one. */
const reported = {
  authClientIdMetadataUrl: "https://example.com/client.json",
  canvases: [{}],
  canvasProvider: {},
  capi: { autoTier: "fast" },
  cloud: {},
  configDir: "/tmp/configuration",
  contextTier: "long_context",
  embeddingCacheStorage: "persistent",
  enableFileHooks: true,
  enableGitHubTelemetryForwarding: true,
  enableHostGitOperations: true,
  enableOnDemandInstructionDiscovery: true,
  enableSessionStore: true,
  enableSessionTelemetry: true,
  expAssignments: { flight: "a" },
  extensionInfo: {},
  factories: [{}],
  featureFlags: { flag: true },
  isExperimentalMode: true,
  mcpOAuthTokenStorage: "in-memory",
  memory: { enabled: true },
  openCanvases: [{}],
  reasoningSummary: "auto",
  remoteSession: "on",
  requestAutoModeSwitch: true,
  requestCanvasRenderer: true,
  sessionLimits: { maxAiCredits: 1 },
};

/** Those whose wish is met without reading them, with the reason. */
const met: Readonly<Record<string, readonly [value: unknown, reason: string]>> = {
  customAgentsLocalOnly: [true, "agents are always local"],
  skipEmbeddingRetrieval: [true, "nothing is retrieved by embeddings"],
};

function ignoredOf(values: object): readonly string[] {
  return parseSessionRequest(new Params("session.create", values), 3).ignored;
}

const folder = fileURLToPath(new URL("../../../src/servers/copilot", import.meta.url));
const sources = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => readFileSync(join(folder, file), "utf8"))
  .join("\n");

describe("an option of the SDK", () => {
  test.each(Object.entries(reported))("%s is reported where it would change something", (option, value) => {
    expect(ignoredOf({ [option]: value })).toEqual([option]);
  });

  test.each(Object.entries(met))("%s is met without a report", (option, [value]) => {
    expect(ignoredOf({ [option]: value })).toEqual([]);
  });

  test.each(read)("%s is read by name", (option) => {
    expect(sources).toMatch(new RegExp(`"${option}"|\\b${option}: \\[`));
  });

  test.each(["authClientIdMetadataUrl", "factories", "featureFlags", "openCanvases"])(
    "%s without content or of another type is not reported",
    (option) => {
      for (const empty of [null, "", [], {}, false, 7]) expect(ignoredOf({ [option]: empty })).toEqual([]);
    },
  );
});

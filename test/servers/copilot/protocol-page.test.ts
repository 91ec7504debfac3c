import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { absentServices } from "../../../src/servers/copilot/methods/absent-services.ts";
import { handshake } from "../../../src/servers/copilot/methods/handshake.ts";
import { unsupported } from "../../../src/servers/copilot/methods/unsupported.ts";
import { hiddenTypes } from "../../../src/servers/copilot/sessions/copilot-events.ts";
import { hasSchemas, loadContract } from "./wire-contract.ts";
import { answeredMethods } from "./wire-kit.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The types that no client gets, by the reason. */
const neverEmitted: Readonly<Record<string, readonly string[]>> = {
  "An aborted call has `tool.execution_complete` with an error.": ["agent.interrupted"],
  "A model is the one that was named: none is composed of others, and no service chooses one.": [
    "assistant.fusion_phase_activity",
    "assistant.fusion_phase_completed",
    "assistant.fusion_phase_failed",
    "assistant.fusion_phase_started",
    "auto_mode_switch.completed",
    "auto_mode_switch.requested",
    "session.auto_mode_resolved",
    "session.auto_tier_recommendation",
    "session.auto_tier_switch_failed",
    "session.fusion_commit_started",
    "session.fusion_completed",
    "session.fusion_handoff",
    "session.fusion_resolved",
    "session.fusion_route_failed",
    "session.fusion_route_started",
  ],
  "Model endpoints run no tools of their own, and state no intent.": ["assistant.intent", "assistant.server_tool_progress"],
  "A repeated request has `model.call_failure` for the try before it, and `assistant.usage` at its end.": [
    "assistant.turn_retry",
    "model.call_finished",
  ],
  "There are no factories, canvases, schedules, remote sessions or objectives.": [
    "factory.run_settled",
    "factory.run_started",
    "factory.run_updated",
    "session.autopilot_objective_changed",
    "session.canvas.closed",
    "session.canvas.opened",
    "session.canvas.recorded",
    "session.canvas.registry_changed",
    "session.canvas.removed",
    "session.canvas.unavailable",
    "session.handoff",
    "session.remote_steerable_changed",
    "session.schedule_cancelled",
    "session.schedule_created",
    "session.schedule_rearmed",
  ],
  "There is no store of memories.": ["session.memory_changed"],
  "Nothing is billed, and no cache of an endpoint is observed.": [
    "prompt_cache_break",
    "session.session_limits_changed",
    "session.usage_checkpoint",
    "session_limits_exhausted.completed",
    "session_limits_exhausted.requested",
  ],
  "No organization governs the runtime.": ["session.managed_settings_enforced"],
  "Permissions are decided by rules, approvals and answers, not by what messages say.": [
    "permission.assentDetected",
    "permission.carriedForward",
    "permission.contextualAuthorization",
    "permission.messageAuthorization",
    "permission.messageAuthorizationDegraded",
    "permission.messageAuthorizationRead",
    "session.permissions_changed",
  ],
  "Isolation of the operating system is decided when a program starts, not for single calls.": ["sandbox.decision"],
  "Headers of MCP servers come from their configuration.": ["mcp.headers_refresh_completed", "mcp.headers_refresh_required"],
  "The status of a server has `session.mcp_server_status_changed`; a removed one is missing in the next `session.mcp_servers_loaded`.": [
    "session.mcp_server_needs_reconnect",
    "session.mcp_server_removed",
  ],
  "Images and documents are part of the events that show them.": ["session.binary_asset"],
  "Skills and modes are in the messages that the model reads, and in `skill.invoked` and `session.mode_changed`.": [
    "session.mode_notice_delivered",
    "skill.context_delivered",
    "skill.context_delivered_ref",
    "skill.invoked_ref",
  ],
  "A conversation that becomes too long is summarized, never cut: `session.compaction_complete`.": ["session.truncation"],
  "The model says that it is done by ending its turn.": ["session.completion_receipt", "session.task_complete"],
  "Hooks have a result, and no progress before it.": ["hook.progress"],
  "A command that a user enters is a call like others: `tool.execution_start`.": ["tool.user_requested"],
  "The agent's settings are in `subagent.started` and `session.custom_agents_updated`.": ["subagent.configured"],
  "The answer to `session.ui.ephemeralQuery` is its result.": ["ui.ephemeral_query"],
};

/** The types whose data the code declares, but for internal ones. */
function emittedTypes(): readonly string[] {
  const text = readFileSync(join(root, "src/session/history/event-types.ts"), "utf8");
  const blocks = [...text.matchAll(/^type \w+Events = \{$([\s\S]*?)^\};$/gm)].map(([, block]) => block);
  const types = [...blocks.join("\n").matchAll(/^ {2}readonly "?([\w.]+)"?: /gm)].map(([, type]) => type!);
  return types.filter((type) => !hiddenTypes.has(type)).sort();
}

/** Names by their part before the last point. */
function table(heading: string, names: readonly string[]): string {
  const groups = new Map<string, string[]>();
  for (const name of [...names].sort()) {
    const group = name.slice(0, name.lastIndexOf(".") + 1);
    groups.set(group, [...(groups.get(group) ?? []), `\`${name.slice(group.length)}\``]);
  }
  const rows = [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([group, all]) => `| ${group === "" ? "" : `\`${group}\``} | ${all.join(", ")} |`);
  return [`| | ${heading} |`, "|---|---|", ...rows].join("\n");
}

/** Names by the reason. */
function reasons(heading: string, groups: Readonly<Record<string, readonly string[]>>): string {
  const rows = Object.entries(groups).map(
    ([reason, names]) => `| ${names.map((name) => `\`${name}\``).join(", ")} | ${sentence(reason)} |`,
  );
  return [`| ${heading} | why |`, "|---|---|", ...rows].join("\n");
}

function sentence(text: string): string {
  return text.startsWith("skillhost") ? text : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

async function page(): Promise<string> {
  const absent = Object.keys(absentServices);
  const answered = [...Object.keys(handshake), ...(await answeredMethods())].filter((name) => !absent.includes(name));
  const refused = Object.values(unsupported).flat();
  return `# Methods and events of the Copilot protocol

What [skillhost as a runtime of the Copilot SDK](copilot-sdk.md) answers and emits, of all that clients of the SDK can call and
handle. This page is made from the source code (\`npx vitest run test/servers/copilot/protocol-page.test.ts -u\`), and a test compares it.

## Methods

${answered.length} methods do what they say.

${table("methods", answered)}

${absent.length} methods belong to services that skillhost does not have. Questions are answered as by a runtime in which nothing of the kind
exists, such as an empty list. A request that would need the service is refused with the reason.

${table("methods", absent)}

${refused.length} methods are refused with the error code -32601 and the reason.

${reasons("methods", unsupported)}

## Events

Clients get these types of events.

${table("events", emittedTypes())}

These are part of the protocol, and no client gets them. A program must not wait for one.

${reasons("events", neverEmitted)}
`;
}

test("the page about methods and events is as the code is", async () => {
  await expect(await page()).toMatchFileSnapshot("../../../docs/copilot-protocol.md");
});

test("each type of event is either emitted or not, and the code that emits it exists", () => {
  const emitted = emittedTypes();
  const never = Object.values(neverEmitted).flat();
  expect(emitted.length).toBeGreaterThan(70);
  expect(never.filter((type, index) => emitted.includes(type) || never.indexOf(type) !== index)).toEqual([]);
  const declaring = new Set(["event-types.ts", "events.ts"]);
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !declaring.has(file.split(/[\\/]/).at(-1)!))
    .map((file) => readFileSync(join(root, "src", file), "utf8"));
  // Some names are put together: `mcp.${kind}.list_changed`.
  const isNamed = (type: string): boolean => {
    const [first, , ...rest] = type.split(".");
    const composed = new RegExp(`\`${first}\\.\\$\\{[^}]+\\}\\.${rest.join(".")}\``);
    return sources.some((text) => text.includes(`"${type}"`) || (rest.length > 0 && composed.test(text)));
  };
  expect(emitted.filter((type) => !isNamed(type))).toEqual([]);
});

// npm run test:interop brings the schemas.
test.skipIf(!hasSchemas)("each type of event of the schemas is in one of the tables", () => {
  const known = new Set([...emittedTypes(), ...Object.values(neverEmitted).flat()]);
  expect(loadContract()!.eventTypes.filter((type) => !known.has(type))).toEqual([]);
});

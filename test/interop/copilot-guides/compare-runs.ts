import { isRecord } from "../../../src/base/json.ts";
import type { GuideRun, SeenEvent } from "./run-guide.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * What differs between two runs of a program, one line each, with `-` before what only the official runtime has and `+` before
 * what only skillhost has: `output`, `events` (types, in order), `announced` (types, without order), `<type>.<member>` of events,
 * and `request` for what the model is sent.
 */
export function compareRuns(official: GuideRun, ours: GuideRun): readonly string[] {
  const count = Math.max(official.sessions.length, ours.sessions.length);
  const sessions = Array.from({ length: count }, (_, index) => [official.sessions[index] ?? [], ours.sessions[index] ?? []] as const);
  return [
    ...new Set([
      ...diffLists(official.output.map(normalizeText), ours.output.map(normalizeText)).map((line) => `output ${line}`),
      ...sessions.flatMap(([theirs, own]) => compareSessions(theirs, own)),
      ...compareRequests(official, ours),
    ]),
  ];
}

/**
 * Types of events that come when something is ready, or the user aborts, beside the turn: their place and number differ from run to run, so only
 * whether a session has them is compared.
 */
const announcements: ReadonlySet<string> = new Set([
  "abort",
  "capabilities.changed",
  "commands.changed",
  "external_tool.completed",
  "external_tool.requested",
  "pending_messages.modified",
  "permission.completed",
  "permission.requested",
  "session.background_tasks_changed",
  "session.info",
  "session.managed_settings_resolved",
  "session.mcp_server_removed",
  "session.mcp_server_status_changed",
  "session.mcp_servers_loaded",
  "session.skills_loaded",
  "session.title_changed",
  "session.tools_updated",
  "session.warning",
  "tool.execution_partial_result",
]);

/** Whether a client still receives them depends on which of two processes is faster, at the end of a session and of a program. */
const racing: ReadonlySet<string> = new Set(["session.shutdown", "subagent.completed"]);

function compareSessions(theirs: readonly SeenEvent[], own: readonly SeenEvent[]): readonly string[] {
  const turnTypes = (events: readonly SeenEvent[]): string[] =>
    events
      .filter(({ type }) => !announcements.has(type) && !racing.has(type) && !type.startsWith("model."))
      .map(({ type, agentId }) => (agentId === undefined ? type : `${type} of a sub-agent`));
  const announced = (events: readonly SeenEvent[]): string[] =>
    [...new Set(events.map(({ type }) => (type.startsWith("model.") ? "model.*" : type)))]
      .filter((type) => announcements.has(type) || type === "model.*")
      .sort();
  return [
    ...diffLists(turnTypes(theirs), turnTypes(own)).map((line) => `events ${line}`),
    ...diffLists(announced(theirs), announced(own)).map((line) => `announced ${line}`),
    ...pairs(theirs, own).flatMap(([one, other]) => compareValues(one.type, one, other)),
  ];
}

/** Events of the same type and about the same call or hook, in their order. Other events have no counterpart. */
function pairs(theirs: readonly SeenEvent[], own: readonly SeenEvent[]): readonly (readonly [SeenEvent, SeenEvent])[] {
  const waiting = new Map<string, SeenEvent[]>();
  for (const event of own) waiting.set(subjectOf(event), [...(waiting.get(subjectOf(event)) ?? []), event]);
  return theirs
    .filter(({ type }) => !type.startsWith("model."))
    .flatMap((event) => {
      const counterpart = waiting.get(subjectOf(event))?.shift();
      return counterpart === undefined ? [] : [[event, counterpart] as const];
    });
}

function subjectOf({ type, agentId, data }: SeenEvent): string {
  const request = data["permissionRequest"] as Json | undefined;
  const subject = data["toolCallId"] ?? request?.["toolCallId"] ?? data["hookType"] ?? data["serverName"] ?? data["message"] ?? "";
  return `${type} ${agentId !== undefined} ${String(subject)}`;
}

/** Counts of tokens and bytes, and times: they depend on the runtime's own texts, and on the machine. */
const measured = /(tokens?|bytes|ms|duration|time|timestamp|limit|count|size)$/i;

function compareValues(path: string, one: unknown, other: unknown): readonly string[] {
  const [theirs, own] = [normalize(one), normalize(other)];
  if (theirs === own) return [];
  if (own === undefined) return [`${path}: -`];
  if (theirs === undefined) return [`${path}: +`];
  if (typeof theirs === "number" && typeof own === "number" && measured.test(path)) return [];
  if (Array.isArray(theirs) && Array.isArray(own)) {
    const length = Math.max(theirs.length, own.length);
    return Array.from({ length }, (_, index) => compareValues(`${path}[]`, theirs[index], own[index])).flat();
  }
  if (isRecord(theirs) && isRecord(own)) {
    const names = new Set([...Object.keys(theirs), ...Object.keys(own)]);
    return [...names].flatMap((name) => compareValues(`${path}.${name}`, theirs[name], own[name]));
  }
  return [`${path}: differs`];
}

function normalize(value: unknown): unknown {
  return typeof value === "string" ? normalizeText(value) : value;
}

function normalizeText(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)/g, "<time>")
    .replaceAll(/127\.0\.0\.1:\d+/g, "<model>");
}

function compareRequests(official: GuideRun, ours: GuideRun): readonly string[] {
  const [theirs, own] = [official.requests, ours.requests];
  const missing = theirs.length === own.length ? [] : [`request count: ${theirs.length} and ${own.length}`];
  const compared = theirs.slice(0, own.length).flatMap((request, index) => {
    const { path, body } = own[index]!;
    const { messages, input, tools, system, instructions, ...rest } = request.body;
    const { messages: messages2, input: input2, tools: tools2, system: _s, instructions: _i, ...rest2 } = body;
    return [
      ...compareValues("request path", request.path, path),
      ...compareValues("request", rest, rest2),
      ...compareValues("request messages", spoken(messages ?? input), spoken(messages2 ?? input2)),
      ...diffLists(toolNames(tools), toolNames(tools2)).map((line) => `request tools ${line}`),
      ...commonTools(tools, tools2).flatMap(([one, other]) => compareValues("request tool", one, other)),
    ];
  });
  return [...missing, ...compared];
}

/** The conversation, without the runtime's own instructions. */
function spoken(messages: readonly Json[] = []): readonly Json[] {
  return messages.filter(({ role }) => role !== "system" && role !== "developer");
}

function nameOf(tool: Json): string {
  return String((tool["function"] as Json | undefined)?.["name"] ?? tool["name"]);
}

function toolNames(tools: readonly Json[] = []): readonly string[] {
  return tools.map(nameOf).sort();
}

/** Tools that both runtimes offer and the program brings: the built-in ones have texts of their own. */
function commonTools(theirs: readonly Json[] = [], own: readonly Json[] = []): readonly (readonly [Json, Json])[] {
  return theirs.flatMap((tool) => {
    const other = own.find((one) => nameOf(one) === nameOf(tool));
    return other === undefined || builtIn.has(nameOf(tool)) ? [] : [[tool, other] as const];
  });
}

const builtIn: ReadonlySet<string> = new Set(
  "ask_user bash create edit glob grep list_agents list_bash read_agent read_bash report_intent skill sql stop_bash task view web_fetch write_agent write_bash".split(
    " ",
  ),
);

/** The longest common subsequence's complement: what only the first list has with `-`, only the second with `+`. */
function diffLists(theirs: readonly string[], own: readonly string[]): readonly string[] {
  const lengths = Array.from({ length: theirs.length + 1 }, () => new Array<number>(own.length + 1).fill(0));
  for (let i = theirs.length - 1; i >= 0; i--) {
    for (let j = own.length - 1; j >= 0; j--) {
      lengths[i]![j] = theirs[i] === own[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  const lines: string[] = [];
  for (let i = 0, j = 0; i < theirs.length || j < own.length; ) {
    if (i < theirs.length && j < own.length && theirs[i] === own[j]) [i, j] = [i + 1, j + 1];
    else if (j >= own.length || (i < theirs.length && lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) lines.push(`- ${theirs[i++]}`);
    else lines.push(`+ ${own[j++]}`);
  }
  return lines;
}

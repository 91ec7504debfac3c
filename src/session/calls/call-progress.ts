import { toError } from "../../base/errors.ts";
import type { Progress } from "../../tools/tool.ts";
import { type CallHost, logFacts } from "./call-stages.ts";
import type { RunningCall } from "./running-call.ts";

/** Tells of a call's progress, or of a line for a log: to whoever made the call, and by an event. */
export function tellProgress(run: RunningCall, host: CallHost, update: Progress): void {
  tellCaller(run, host, update);
  const { events } = host;
  if (update.level !== undefined) tellLogLine(run, host, update);
  else if (events.wants(progressed))
    events.append(progressed, { toolCallId: run.call.id, progressMessage: progressText(update) }, run.agent.agentId);
}

const progressed = "tool.execution_progress";
// The Copilot SDK has no event for what a tool logs, and this one for what it has none for.
const notified = "session.custom_notification";

function tellCaller(run: RunningCall, host: CallHost, update: Progress): void {
  const { onProgress } = run.agent;
  if (onProgress === undefined) return;
  try {
    onProgress(update, { toolCallId: run.call.id, toolName: run.call.name });
  } catch (error) {
    host.log.error("A progress listener failed.", { ...logFacts(run, host), error: toError(error) });
  }
}

function tellLogLine(run: RunningCall, { events }: CallHost, { level, message, data }: Progress): void {
  if (!events.wants(notified)) return;
  const line = { level, ...(message !== undefined && { message }), ...(data !== undefined && { data }) };
  const payload = { toolCallId: run.call.id, toolName: run.call.name, ...line };
  events.append(notified, { name: "tool.log", source: "skillhost", payload }, run.agent.agentId);
}

function progressText({ message, progress, total }: Progress): string {
  if (message !== undefined) return message;
  if (progress === undefined) return "";
  return total === undefined ? String(progress) : `${progress}/${total}`;
}

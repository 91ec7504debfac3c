import { HostError } from "../../../base/errors.ts";
import type { HookCommand } from "../../../formats/plugins/hook-config.ts";
import { foreignTool, fromForeignArguments } from "./foreign-tools.ts";

type Fields = Readonly<Record<string, unknown>>;

/** How a hook's program ended. */
export interface HookReply {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const mostContext = 10_000;

/**
 * What a hook's program answered, as our hooks answer. Undefined: nothing. By the documented protocol of each client: exit
 * code 2 blocks, with what is on stderr as the reason; any other that is not 0 is a fault, which for the Copilot runtime
 * denies a call and for others decides nothing; with 0, JSON on stdout decides.
 * @throws HostError `HOOK_COMMAND` for JSON that breaks off, or a code that the protocol knows nothing of.
 */
export function hookAnswer(command: HookCommand, input: Fields, { code, stdout, stderr }: HookReply): object | undefined {
  const { moment, dialect } = command;
  if (code === null) throw fault(command, "was ended by a signal");
  if (code === 2) return blocked(command, stderr.trim(), stdout.trim());
  if (code !== 0) {
    if (moment === "preToolUse" && dialect === "copilot") throw fault(command, `ended with exit code ${code}`);
    return undefined;
  }
  const text = withoutProgress(stdout).trim();
  const answer = parsed(text);
  if (answer !== undefined) return answers[moment]?.(answer, command, input);
  if (text.startsWith("{")) throw fault(command, "began to answer with JSON that does not parse");
  const isContext = dialect !== "copilot" && dialect !== "gemini" && (moment === "sessionStart" || moment === "userPromptSubmitted");
  return isContext && text !== "" ? { additionalContext: cut(text) } : undefined;
}

function blocked({ moment, dialect }: HookCommand, stderr: string, stdout: string): object | undefined {
  const reason = cut(stderr) || "A hook of a plugin blocked this without saying why.";
  if (moment === "preToolUse") return { permissionDecision: "deny", permissionDecisionReason: reason };
  if (dialect === "copilot") return moment === "postToolUseFailure" && stdout !== "" ? { additionalContext: cut(stdout) } : undefined;
  if (dialect === "gemini" && moment === "postToolUse") return { modifiedResult: reason };
  if (moment === "postToolUse" || moment === "postToolUseFailure") return { additionalContext: reason };
  if (moment === "userPromptSubmitted") return withheld(reason);
  return moment === "agentStop" || moment === "subagentStop" ? { decision: "block", reason } : undefined;
}

/** A prompt cannot be taken back here; what must not reach a model does not reach it. */
function withheld(reason: string): object {
  return { modifiedPrompt: `[The user's message was withheld by a hook, for this reason: ${reason}]` };
}

type Answer = (answer: Fields, command: HookCommand, input: Fields) => object | undefined;

const answers: Readonly<Partial<Record<HookCommand["moment"], Answer>>> = {
  preToolUse(answer, command, input) {
    const own = specific(answer);
    const decision = own["permissionDecision"] ?? answer["permissionDecision"] ?? decided(answer);
    const reason = textOf(own["permissionDecisionReason"]) ?? textOf(answer["permissionDecisionReason"]) ?? reasonOf(answer);
    return defined({
      permissionDecision: answer["continue"] === false ? "deny" : decision === "defer" ? undefined : decision,
      permissionDecisionReason: reason,
      modifiedArgs: changedArguments(answer, command, input),
      additionalContext: contextOf(answer),
    });
  },
  postToolUse(answer, { dialect }) {
    const own = specific(answer);
    const replaced = own["updatedToolOutput"] ?? own["updatedMCPToolOutput"] ?? own["tool_output"] ?? answer["modifiedResult"];
    const reason = decided(answer) === "deny" ? reasonOf(answer) : undefined;
    return defined({
      modifiedResult: dialect === "gemini" && reason !== undefined ? reason : replaced,
      additionalContext: joined(dialect === "gemini" ? undefined : reason, contextOf(answer)),
    });
  },
  postToolUseFailure: (answer) =>
    defined({ additionalContext: joined(decided(answer) === "deny" ? reasonOf(answer) : undefined, contextOf(answer)) }),
  userPromptSubmitted(answer, { protocol }) {
    // The Copilot runtime drops what programs answer here.
    if (protocol === "copilot") return undefined;
    if (decided(answer) === "deny" || answer["continue"] === false) return withheld(reasonOf(answer) ?? "it gave none.");
    return defined({ additionalContext: contextOf(answer) });
  },
  userPromptTransformed: (answer) => defined({ modifiedTransformedPrompt: textOf(answer["modifiedTransformedPrompt"]) || undefined }),
  sessionStart: (answer) => defined({ additionalContext: contextOf(answer) }),
  subagentStart: (answer) => defined({ additionalContext: contextOf(answer) }),
  agentStop: stopAnswer,
  subagentStop: stopAnswer,
};

function stopAnswer(answer: Fields): object | undefined {
  if (answer["continue"] === false || decided(answer) !== "deny") return undefined;
  return { decision: "block", reason: reasonOf(answer) ?? "A hook of a plugin asks you to continue." };
}

function changedArguments(answer: Fields, { dialect, protocol }: HookCommand, { toolName, toolArgs }: Fields): unknown {
  if (answer["modifiedArgs"] !== undefined && dialect === "copilot") return answer["modifiedArgs"];
  const own = specific(answer);
  const tool = foreignTool(dialect, String(toolName));
  if (protocol === "gemini") {
    const changes = fromForeignArguments(tool, own["tool_input"]);
    return isObject(changes) ? { ...(isObject(toolArgs) ? toolArgs : {}), ...changes } : undefined;
  }
  return isObject(own["updatedInput"]) ? fromForeignArguments(tool, own["updatedInput"]) : undefined;
}

/** Older and newer words for the same two decisions. */
function decided({ decision }: Fields): "allow" | "deny" | undefined {
  if (decision === "block" || decision === "deny") return "deny";
  return decision === "approve" || decision === "allow" ? "allow" : undefined;
}

function reasonOf(answer: Fields): string | undefined {
  return textOf(answer["reason"]) ?? textOf(answer["stopReason"]);
}

function contextOf(answer: Fields): string | undefined {
  return textOf(specific(answer)["additionalContext"]) ?? textOf(answer["additionalContext"]);
}

function specific(answer: Fields): Fields {
  const own = answer["hookSpecificOutput"];
  return isObject(own) ? own : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? cut(value) : undefined;
}

function joined(...texts: readonly (string | undefined)[]): string | undefined {
  const all = texts.filter((text) => text !== undefined && text !== "");
  return all.length === 0 ? undefined : all.join("\n\n");
}

function cut(text: string): string {
  return text.length > mostContext ? `${text.slice(0, mostContext - 1)}…` : text;
}

function defined(fields: Fields): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function parsed(text: string): Fields | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    // Told by whoever asked, who knows what the hook guards.
    return undefined;
  }
}

/** Lines that only tell how far a hook is are not part of its answer. */
function withoutProgress(stdout: string): string {
  if (!stdout.includes('"progress"')) return stdout;
  return stdout
    .split("\n")
    .filter((line) => parsed(line.trim())?.["type"] !== "progress")
    .join("\n");
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fault({ event }: HookCommand, what: string): HostError {
  return new HostError("HOOK_COMMAND", `The program of a ${event} hook ${what}.`);
}

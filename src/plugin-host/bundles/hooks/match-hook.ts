import { RE2JS } from "re2js";
import type { HookCommand, HookMoment } from "../../../formats/plugins/hook-config.ts";
import { namesOfTool } from "./foreign-tools.ts";

type Inputs = Readonly<Record<string, unknown>>;

/** Decides whether a hook is for what happens. Undefined: its matcher is no regular expression that can be used. */
export function createMatcher(command: HookCommand): ((input: Inputs) => boolean) | undefined {
  const { matcher, moment } = command;
  const isForAll = matcher === undefined || ["", "*", "**"].includes(matcher.trim());
  const subject = subjects[moment];
  if (isForAll || subject === undefined) return () => true;
  const fits = createTest(command, matcher);
  return fits && ((input) => subject(command, input).some(fits));
}

type Subject = (command: HookCommand, input: Inputs) => readonly string[];

const toolNames: Subject = ({ dialect, protocol }, { toolName }) =>
  protocol === "copilot" ? [String(toolName)] : namesOfTool(dialect, String(toolName));
const agentName: Subject = (_command, { agentName: name }) => [String(name)];

/** What a matcher is held against. Of other moments there is only one kind. */
const subjects: Readonly<Partial<Record<HookMoment, Subject>>> = {
  preToolUse: toolNames,
  postToolUse: toolNames,
  postToolUseFailure: toolNames,
  subagentStart: agentName,
  subagentStop: agentName,
  // What others call the start of a program is a new session here.
  sessionStart: (_command, { source }) => (source === "resume" ? ["resume"] : ["startup", String(source)]),
  sessionEnd: (_command, { reason }) => [String(reason), "other"],
};

/** As each dialect documents it: words between bars are names; otherwise a regular expression, of the whole for Copilot. */
function createTest({ dialect, protocol }: HookCommand, matcher: string): ((text: string) => boolean) | undefined {
  const isWords = /^[\w|,\s-]+$/.test(matcher);
  if (isWords && protocol === "claude" && dialect !== "codex") {
    const words = new Set(matcher.split(/[|,]/).map((word) => word.trim()));
    return (text) => words.has(text);
  }
  const isWhole = dialect === "copilot";
  if (matcher.length > 2_000) return undefined;
  try {
    // In time that grows with the text only: the expression is a stranger's.
    const pattern = RE2JS.compile(isWhole ? `^(?:${matcher})$` : matcher);
    return (text) => pattern.test(text);
  } catch {
    // Look-around, back-references, or no expression at all: whoever asked reports it.
    return undefined;
  }
}

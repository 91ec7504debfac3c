import type { AskHandler } from "../session/clients/client-requests.ts";
import { permissionText } from "../session/permissions/permission-reach.ts";
import { approveAll } from "../session/permissions/permissions.ts";
import type { Asks, PermissionAsk, PermissionDecision } from "../tools/tool.ts";
import type { CommandContext } from "./command-context.ts";
import { visibleLine, visibleText } from "./terminal-style.ts";

interface Confirmation {
  /** What is asked once everything was shown: `Install it?` */
  readonly question: string;
  /** What to do where nobody can be asked: `Review it, then install it with --yes.` */
  readonly otherwise: string;
  /** All of what was shown in part. Undefined: it was shown whole. */
  readonly whole?: (() => readonly string[]) | undefined;
}

/** Whether the person on the terminal agrees. What was not shown whole needs more than a "y". */
export async function confirm({ io, out }: CommandContext, { question, otherwise, whole }: Confirmation): Promise<boolean> {
  if (io.ask === undefined || !io.stdin.isTTY || !io.stderr.isTTY || out.isJson) {
    out.note(`Not a terminal, so nothing was confirmed. ${otherwise}`);
    return false;
  }
  const ask = async (text: string): Promise<string> => (await io.ask!(text, io.signal)).trim().toLowerCase();
  const isYes = async (): Promise<boolean> => /^y(es)?$/.test(await ask(`${question} [y/N] `));
  if (whole === undefined) return isYes();
  const answer = await ask(
    `${question} Some of it is not shown. Type "show" to see everything, or "agree unseen"; anything else declines: `,
  );
  if (answer === "agree unseen") return true;
  if (answer !== "show") return false;
  for (const line of whole()) out.line(line);
  return isYes();
}

interface PermissionRoute {
  readonly handler: AskHandler<"permission">;
  /** Whether a call was denied because there is nobody to ask. */
  readonly wasUnanswered: () => boolean;
}

/** How a call gets its permission: `--yes` gives it, a person on a terminal is asked, and otherwise it is denied. */
export function permissionRoute(context: CommandContext, sourceOf: (tool: string) => string, allowed: boolean): PermissionRoute {
  if (allowed) return { handler: approveAll, wasUnanswered: () => false };
  const ask = asker(context);
  if (ask !== undefined) return { handler: (data) => decide(data, sourceOf(data.toolName), ask), wasUnanswered: () => false };
  let isUnanswered = false;
  const deny = (): PermissionDecision => {
    isUnanswered = true;
    return { kind: "user-not-available" };
  };
  return { handler: deny, wasUnanswered: () => isUnanswered };
}

/** Lets a tool ask the person on the terminal; undefined when there is none. */
export function userInputHandler(context: CommandContext): AskHandler<"userInput"> | undefined {
  const ask = asker(context);
  return ask && (async (data) => toAnswer(await ask(`${questionText(data)} `), data.choices ?? []));
}

type Ask = (question: string) => Promise<string>;

function asker({ io }: CommandContext): Ask | undefined {
  const { ask } = io;
  return ask !== undefined && io.stdin.isTTY && io.stderr.isTTY ? (question) => ask(question, io.signal) : undefined;
}

type UserInput = Asks["userInput"]["data"];

function questionText({ question, choices = [] }: UserInput): string {
  return [visibleText(question), ...choices.map((choice, index) => `  ${index + 1}. ${visibleLine(choice)}`), ">"].join("\n");
}

/** A choice by its number or its text; anything else is the answer in one's own words. */
function toAnswer(given: string, choices: readonly string[]): Asks["userInput"]["answer"] {
  const text = given.trim();
  const chosen = choices[Number(text) - 1] ?? choices.find((choice) => choice === text);
  return chosen === undefined ? { answer: text, wasFreeform: true } : { answer: chosen, wasFreeform: false };
}

async function decide(data: PermissionAsk, source: string, ask: Ask): Promise<PermissionDecision> {
  const { text, isWhole } = permissionText(data, source);
  const answer = isWhole ? await askShort(text, ask) : await askLong(data, source, text, ask);
  return answer ? { kind: "approve-once" } : { kind: "reject" };
}

async function askShort(text: string, ask: Ask): Promise<boolean> {
  return /^y(es)?$/.test(read(await ask(`${text}\nAllow it? [y/N] `)));
}

/** What is not shown is allowed only by who says so, or has seen it. */
async function askLong(data: PermissionAsk, source: string, text: string, ask: Ask): Promise<boolean> {
  const how = 'Type "show" to see everything, or "allow unseen" to allow it without; anything else denies it';
  const answer = read(await ask(`${text}\n${how}: `));
  if (answer === "show") return askShort(permissionText(data, source, { isCut: false }).text, ask);
  return answer === "allow unseen";
}

function read(answer: string): string {
  return answer.trim().toLowerCase();
}

import type { AskHandler } from "../session/clients/client-requests.ts";
import { lastingApprovalText } from "../session/permissions/permission-approvals.ts";
import { permissionText } from "../session/permissions/permission-reach.ts";
import type { Asks, PermissionAsk, PermissionDecision } from "../tools/tool.ts";
import { approveAll } from "../tools/tool.ts";
import type { CommandContext } from "./command-context.ts";
import { visibleLine, visibleText } from "./terminal-style.ts";

interface Confirmation {
  /** The question after everything was shown: `Install it?` */
  readonly question: string;
  /** The advice when the user cannot be asked: `Review it, then install it with --yes.` */
  readonly otherwise: string;
  /** The complete text if only a part was shown. Undefined: all of it was shown. */
  readonly whole?: (() => readonly string[]) | undefined;
}

/** Whether the user at the terminal agrees. For text that was shown in part, a "y" is not enough. */
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
  /** Whether a call was denied because the user could not be asked. */
  readonly wasUnanswered: () => boolean;
}

/** How a call gets its permission: `--yes` grants it, a user at a terminal is asked, otherwise it is denied. */
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

/**
 * Asks the user at the terminal about each call that no rule decides: once, for the session, always in this project, or not. Says
 * what the longer answers allow besides this call, and offers them only where they would. Undefined without a terminal.
 */
export function promptPermission(context: CommandContext): AskHandler<"permission"> | undefined {
  const ask = context.out.isJson ? undefined : asker(context);
  return ask && ((data) => decideWithScope(data, ask));
}

async function decideWithScope(data: PermissionAsk, ask: Ask): Promise<PermissionDecision> {
  const { text, isWhole } = permissionText(data);
  if (isWhole) return askScope(data, text, ask);
  const answer = read(await ask(`${text}\n${unseen}: `));
  if (answer === "show") return askScope(data, permissionText(data, undefined, { isCut: false }).text, ask);
  return answer === "allow unseen" ? { kind: "approve-once" } : { kind: "reject" };
}

const unseen = 'Type "show" to see everything, or "allow unseen" to allow it without; anything else denies it';

async function askScope(data: PermissionAsk, text: string, ask: Ask): Promise<PermissionDecision> {
  const lasting = lastingApprovalText(data);
  // An answer that few read is not offered.
  if (lasting === undefined || lasting.length > 500) return { kind: (await askShort(text, ask)) ? "approve-once" : "reject" };
  const scopes = `[s] and [a] allow ${visibleLine(lasting)}.\nAllow it? [y] once, [s] for this session, [a] always in this project, [N] no: `;
  const answer = read(await ask(`${text}\n${scopes}`));
  if (/^y(es)?$/.test(answer)) return { kind: "approve-once" };
  if (answer === "s") return { kind: "approve-for-session" };
  return answer === "a" ? { kind: "approve-for-location" } : { kind: "reject" };
}

/** Lets tools ask the user at the terminal; undefined without a terminal. */
export function userInputHandler(context: CommandContext): AskHandler<"userInput"> | undefined {
  const ask = asker(context);
  return ask && (async (data) => toAnswer(await ask(`${questionText(data)} `), data.choices ?? []));
}

type Ask = (question: string) => Promise<string>;

/** Asks the user at the terminal; undefined without a terminal. */
export function asker({ io }: CommandContext): Ask | undefined {
  const { ask } = io;
  return ask !== undefined && io.stdin.isTTY && io.stderr.isTTY ? (question) => ask(question, io.signal) : undefined;
}

type UserInput = Asks["userInput"]["data"];

function questionText({ question, choices = [] }: UserInput): string {
  return [visibleText(question), ...choices.map((choice, index) => `  ${index + 1}. ${visibleLine(choice)}`), ">"].join("\n");
}

/** Interprets an answer: a choice by its number or text, otherwise free text. */
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

/** Text that was cut is allowed only after it was shown or with explicit consent. */
async function askLong(data: PermissionAsk, source: string, text: string, ask: Ask): Promise<boolean> {
  const answer = read(await ask(`${text}\n${unseen}: `));
  if (answer === "show") return askShort(permissionText(data, source, { isCut: false }).text, ask);
  return answer === "allow unseen";
}

function read(answer: string): string {
  return answer.trim().toLowerCase();
}

import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";

/**
 * How a session's system message differs from the one that skillhost makes.
 *
 * @example
 * ```ts
 * const options: SystemMessageOptions = { mode: "append", content: "Answer in one sentence." };
 * ```
 */
export type SystemMessageOptions =
  /** After everything else. */
  | { readonly mode?: "append" | undefined; readonly content: string }
  /** In the place of skillhost's own text. What agents, skills and servers have to say still follows it. */
  | { readonly mode: "replace"; readonly content: string }
  /** Section by section; `content` comes after everything else. */
  | {
      readonly mode: "customize";
      readonly content?: string | undefined;
      readonly sections?: Readonly<Record<string, SectionChange>> | undefined;
    };

/** A change of one section of the system message. */
export interface SectionChange {
  /** A function gets the section as it is and gives what stands in its place. */
  readonly action: "replace" | "remove" | "append" | "prepend" | "preserve" | SectionTransform;
  readonly content?: string | undefined;
}

/** A function that returns a section of the system message in another form. */
export type SectionTransform = (content: string) => string | Promise<string>;

/** A part of the system message. `isOwn`: skillhost's own text, which `replace` replaces. */
export interface InstructionSection {
  readonly id: string;
  readonly text: string;
  readonly isOwn: boolean;
}

/** Changes sections as options want it; a promise only where a transform returns one. */
export async function customizeSections(
  sections: readonly InstructionSection[],
  options: SystemMessageOptions,
): Promise<readonly InstructionSection[]> {
  const { mode = "append", content = "" } = options;
  if (mode === "replace") return [{ id: "replaced", text: content, isOwn: true }, ...sections.filter(({ isOwn }) => !isOwn)];
  const changes = ("sections" in options && options.sections) || {};
  const changed = await Promise.all(sections.map((section) => changeSection(section, own(changes, section.id))));
  const known = new Set(sections.map(({ id }) => id));
  // Sections that other hosts have: what is to be said there is said at the end.
  const strange = Object.entries(changes).flatMap(([id, { action, content: text = "" }]) =>
    known.has(id) || action === "remove" || action === "preserve" ? [] : [text],
  );
  return [...changed, ...[...strange, content].map((text) => ({ id: "last_instructions", text, isOwn: false }))];
}

async function changeSection(section: InstructionSection, change: SectionChange | undefined): Promise<InstructionSection> {
  if (change === undefined) return section;
  return { ...section, text: await changedText(section.text, change) };
}

function changedText(text: string, { action, content = "" }: SectionChange): string | Promise<string> {
  if (typeof action === "function") return action(text);
  switch (action) {
    case "replace":
      return content;
    case "remove":
      return "";
    case "append":
      return joinParts([text, content]);
    case "prepend":
      return joinParts([content, text]);
    default:
      return text;
  }
}

/** Puts texts one below the other, leaving out what is empty. */
export function joinParts(parts: readonly string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
}

function own<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

const actions: readonly unknown[] = ["replace", "remove", "append", "prepend", "preserve"];

/** @throws HostError `SESSION_OPTIONS` naming the part that is wrong. */
export function readSystemMessage(value: unknown, field: string): SystemMessageOptions {
  if (!isRecord(value)) throw wrong(field, "an object with mode and content");
  const { mode = "append", content, sections } = value;
  if (mode !== "append" && mode !== "replace" && mode !== "customize") throw wrong(`${field}.mode`, '"append", "replace" or "customize"');
  if (typeof content !== "string" && !(mode === "customize" && content === undefined)) throw wrong(`${field}.content`, "a string");
  if (mode !== "customize") return Object.freeze({ mode, content: content as string });
  return Object.freeze({
    mode,
    content: content as string | undefined,
    sections: sections === undefined ? undefined : readSections(sections, `${field}.sections`),
  });
}

function readSections(value: unknown, field: string): Readonly<Record<string, SectionChange>> {
  if (!isRecord(value)) throw wrong(field, "an object of changes by section");
  const entries = Object.entries(value).map(([id, change]) => [id, readChange(change, `${field}.${id}`)] as const);
  return Object.freeze(Object.fromEntries(entries));
}

function readChange(value: unknown, field: string): SectionChange {
  if (!isRecord(value)) throw wrong(field, "an object with an action");
  // A function that was recorded in a log left nothing behind: the section stays as it is.
  const { action = "preserve", content } = value;
  if (typeof action !== "function" && !actions.includes(action))
    throw wrong(`${field}.action`, `one of ${actions.join(", ")}, or a function`);
  if (content !== undefined && typeof content !== "string") throw wrong(`${field}.content`, "a string");
  return Object.freeze({ action: action as SectionChange["action"], content });
}

function wrong(field: string, what: string): HostError {
  return new HostError("SESSION_OPTIONS", `${field} must be ${what}.`);
}

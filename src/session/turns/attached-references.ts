import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";

/** A pointer to something at GitHub, or what an extension contributes. Nothing of it is fetched. */
export interface ReferenceAttachment {
  readonly type: ReferenceType;
  readonly [field: string]: unknown;
}

type ReferenceType =
  | "github_reference"
  | "github_commit"
  | "github_release"
  | "github_actions_job"
  | "github_repository"
  | "github_file_diff"
  | "github_tree_comparison"
  | "github_url"
  | "github_file"
  | "github_snippet"
  | "extension_context";

interface ReadReference {
  readonly described: object;
  readonly reference: string;
}

type Fields = Readonly<Record<string, unknown>>;

// Whatever a client sends there is repeated in every request to the model.
const maxField = 4_000;
const maxPayload = 64 * 1024;

export function isReferenceType(type: unknown): type is ReferenceType {
  return typeof type === "string" && Object.hasOwn(lines, type);
}

/** @throws HostError `ATTACHMENT_INVALID` naming the field; `ATTACHMENT_TOO_LARGE`. */
export function readReference(given: Fields, field: string): ReadReference {
  return { described: given, reference: lines[given["type"] as ReferenceType](new ReferenceFields(given, field)) };
}

/** The text that a user has selected in an editor. */
export function ideSelection(name: string, text: string, selection: unknown): string {
  const about = "The user has the following text selected in their IDE. This may or may not be related to their request.";
  return `<ide_selection>\n${about}\nFile: ${escapeText(name)}${linesOf(selection)}\n\`\`\`\n${text}\n\`\`\`\n</ide_selection>`;
}

/** Editors count lines from 0. */
function linesOf(selection: unknown): string {
  const { start, end } = isRecord(selection) ? selection : {};
  const [from, to] = [start, end].map((position) => (isRecord(position) ? Number(position["line"]) + 1 : Number.NaN));
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return "";
  return from === to ? ` (line ${from})` : ` (lines ${from}-${to})`;
}

/** How a model reads each type. */
const lines: { readonly [Type in ReferenceType]: (fields: ReferenceFields) => string } = {
  github_reference: (it) =>
    `#${it.count("number")} - ${it.text("title")} [${it.text("referenceType")}] [${it.text("state")}] (${it.text("url")})`,
  github_commit: (it) => `${it.repo()}@${it.text("oid")} - ${it.text("message")} [commit] (${it.text("url")})`,
  github_release: (it) => `${it.repo()} ${it.text("tagName")} - ${it.text("name")} [release] (${it.text("url")})`,
  github_actions_job(it) {
    const conclusion = it.optionalText("conclusion") ?? "in progress";
    return `${it.repo()} job ${it.count("jobId")} - ${it.text("workflowName")} / ${it.text("jobName")} [actions job] [${conclusion}] (${it.text("url")})`;
  },
  github_repository(it) {
    const [ref, description] = [it.optionalText("ref"), it.optionalText("description")];
    const revision = ref === undefined ? "" : `@${ref}`;
    return `${it.repo()}${revision}${description === undefined ? "" : ` - ${description}`} [repository] (${it.text("url")})`;
  },
  github_file_diff(it) {
    const [base, head] = [it.part("base"), it.part("head")];
    if (base === undefined && head === undefined) throw it.wrong("head", "an object, or base must be one");
    const sides = [base, head].map((side) => (side === undefined ? "(none)" : locationOf(side)));
    return `${sides.join(" → ")} [file diff] (${it.text("url")})`;
  },
  github_tree_comparison(it) {
    const sides = ["base", "head"].map((name) => {
      const side = it.part(name) ?? it.part(name, "an object");
      return `${side?.repo()}@${side?.text("revision")}`;
    });
    return `${sides.join(" → ")} [comparison] (${it.text("url")})`;
  },
  github_url: (it) => `${it.text("url")} [link]`,
  github_file: (it) => `${locationOf(it)} [file] (${it.text("url")})`,
  github_snippet(it) {
    const range = it.part("lineRange") ?? it.part("lineRange", "an object");
    return `${locationOf(it)} lines ${range?.count("start")}-${range?.count("end")} [snippet] (${it.text("url")})`;
  },
  extension_context(it) {
    const names = ["extensionId", "canvasId", "instanceId", "title", "capturedAt"];
    const required = new Set(["extensionId", "title", "capturedAt"]);
    const attributes = names.flatMap((name) => {
      const value = required.has(name) ? it.text(name) : it.optionalText(name);
      return value === undefined ? [] : [`${name}="${value}"`];
    });
    return `<extension_context ${attributes.join(" ")}>${it.payload()}</extension_context>`;
  },
};

function locationOf(it: ReferenceFields): string {
  return `${it.repo()}@${it.text("ref")}:${it.text("path")}`;
}

/** The fields of an attachment, checked as they are read, and safe to stand between tags. */
class ReferenceFields {
  readonly #given: Fields;
  readonly #field: string;

  constructor(given: Fields, field: string) {
    this.#given = given;
    this.#field = field;
  }

  text(name: string): string {
    return this.optionalText(name) ?? this.#refuse(name, "a string");
  }

  optionalText(name: string): string | undefined {
    const value = this.#given[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value !== "string") return this.#refuse(name, "a string");
    if (value.length > maxField) throw tooLong(`${this.#field}.${name}`, maxField);
    return escapeText(value.replace(/\s*[\r\n]+\s*/g, " "));
  }

  count(name: string): number {
    const value = this.#given[name];
    return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : this.#refuse(name, "a positive integer");
  }

  /** Undefined: it is not given, and no `expected` says that it must be. */
  part(name: string, expected?: string): ReferenceFields | undefined {
    const value = this.#given[name] ?? undefined;
    if (isRecord(value)) return new ReferenceFields(value, `${this.#field}.${name}`);
    return value === undefined && expected === undefined ? undefined : this.#refuse(name, expected ?? "an object");
  }

  /** `owner/name` of the repository. */
  repo(): string {
    const repo = this.part("repo", "an object with owner and name");
    return `${repo?.text("owner")}/${repo?.text("name")}`;
  }

  payload(): string {
    const payload = this.#given["payload"];
    if (payload === undefined) return "";
    const json = JSON.stringify(payload) ?? "null";
    if (json.length > maxPayload) throw tooLong(`${this.#field}.payload`, maxPayload);
    return `<payload>${escapeText(json)}</payload>`;
  }

  wrong(name: string, expected: string): HostError {
    return new HostError("ATTACHMENT_INVALID", `${this.#field}.${name} must be ${expected}.`);
  }

  #refuse(name: string, expected: string): never {
    throw this.wrong(name, expected);
  }
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function tooLong(field: string, limit: number): HostError {
  return new HostError("ATTACHMENT_TOO_LARGE", `${field}: the limit is ${limit} characters.`);
}

import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { copyJson } from "./json-copy.ts";
import { isRecord } from "./schema/walk-schema.ts";
import type { BinaryResult, ResultType, ToolResult } from "./tool.ts";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Collects what had to be left out of a result: for the session log, and as diagnostics. */
export interface ResultNotes {
  readonly texts: string[];
  add(code: string, text: string): void;
}

export function createNotes(onDiagnostic: ((diagnostic: Diagnostic) => void) | undefined): ResultNotes {
  const texts: string[] = [];
  return {
    texts,
    add(code, text) {
      texts.push(text);
      onDiagnostic?.({ severity: "warning", code, message: text });
    },
  };
}

/**
 * Takes over an object with a `textResultForLlm`, field by field. A field that cannot be used is left out with a note;
 * an unknown result type is a failure, because nobody can say that it was a success.
 */
export function toolResultObject(raw: Readonly<Record<string, unknown>>, onDiagnostic?: (diagnostic: Diagnostic) => void): ToolResult {
  const notes = createNotes(onDiagnostic);
  const result: Writable<ToolResult> = {
    resultType: resultTypeOf(raw["resultType"], notes),
    textResultForLlm: String(raw["textResultForLlm"]),
  };
  const binaries = binariesOf(raw["binaryResultsForLlm"], notes);
  if (binaries.length > 0) result.binaryResultsForLlm = binaries;
  const error = logText(raw["error"]);
  if (error !== undefined) result.error = error;
  keepData(raw, result, notes);
  const log = logText(raw["sessionLog"]);
  const lines = log === undefined ? notes.texts : [log, ...notes.texts];
  if (lines.length > 0) result.sessionLog = lines.join("\n");
  return result;
}

/** A checked binary, or null with a note that says what is wrong with it. */
export function toBinary(raw: unknown, notes: ResultNotes): BinaryResult | null {
  if (!isRecord(raw)) return refuse(notes, "A binary result that is not an object was removed.");
  const { data, mimeType, type, description } = raw;
  if (typeof mimeType !== "string" || !/^[\w.+-]+\/[\w.+-]+(?:\s*;.*)?$/.test(mimeType))
    return refuse(notes, 'A binary result without a media type such as "image/png" was removed.');
  const base64 = typeof data === "string" ? toBase64(data) : null;
  if (base64 === null || base64 === "")
    return refuse(notes, `A binary result (${mimeType.slice(0, 80)}) whose data is not base64 was removed.`);
  return {
    data: base64,
    mimeType,
    type: typeof type === "string" && type !== "" ? type : mimeType.startsWith("image/") ? "image" : "resource",
    ...(typeof description === "string" && { description }),
  };
}

const resultTypes: ReadonlySet<unknown> = new Set<ResultType>(["success", "failure", "rejected", "denied", "timeout"]);

function resultTypeOf(value: unknown, notes: ResultNotes): ResultType {
  if (value === undefined || value === null) return "success";
  if (resultTypes.has(value)) return value as ResultType;
  notes.add("RESULT_TYPE_UNKNOWN", `Unknown resultType ${shown(value)}, treated as "failure". Use ${[...resultTypes].join(", ")}.`);
  return "failure";
}

function binariesOf(value: unknown, notes: ResultNotes): readonly BinaryResult[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map((raw) => toBinary(raw, notes)).filter((binary) => binary !== null);
  notes.add("RESULT_FIELD_INVALID", "binaryResultsForLlm is not an array and was removed.");
  return [];
}

function keepData(raw: Readonly<Record<string, unknown>>, result: Writable<ToolResult>, notes: ResultNotes): void {
  const telemetry = keep(raw, "toolTelemetry", isRecord, notes);
  if (isRecord(telemetry)) result.toolTelemetry = telemetry;
  const references = keep(raw, "toolReferences", Array.isArray, notes);
  if (Array.isArray(references)) result.toolReferences = references;
  const contents = keep(raw, "contents", Array.isArray, notes);
  if (Array.isArray(contents)) result.contents = contents;
  const meta = keep(raw, "meta", isRecord, notes);
  if (isRecord(meta)) result.meta = meta;
  const structured = keep(raw, "structuredContent", () => true, notes);
  if (structured !== undefined) result.structuredContent = structured;
}

/** A frozen JSON copy of a member, so that what is sent and logged later can no longer change or fail. */
export function keep(
  raw: Readonly<Record<string, unknown>>,
  key: string,
  isExpected: (value: unknown) => boolean,
  notes: ResultNotes,
): unknown {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (!isExpected(value)) return void notes.add("RESULT_FIELD_INVALID", `${key} has the wrong type and was removed.`);
  const copy = copyJson(value);
  if (copy.ok) return copy.value;
  notes.add("RESULT_FIELD_INVALID", `${[key, copy.path].filter(Boolean).join(".")} ${copy.reason}; ${key} was removed.`);
  return undefined;
}

function logText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  if (value instanceof Error) return errorMessage(value);
  const copy = copyJson(value);
  return copy.ok ? JSON.stringify(copy.value) : `(a value that ${copy.reason})`;
}

/** Standard base64 as it is; line breaks, the URL alphabet and missing padding are put right. Null: it is none. */
export function toBase64(data: string): string | null {
  const bare = withoutPadding(data);
  if (data.length % 4 === 0 && isBase64(bare)) return data;
  const repaired = withoutPadding(data.replace(/\s+/g, "")).replaceAll("-", "+").replaceAll("_", "/");
  if (repaired.length % 4 === 1 || !isBase64(repaired)) return null;
  return repaired.padEnd(Math.ceil(repaired.length / 4) * 4, "=");
}

/** A search for what does not belong: matching the whole would need a stack as long as the data. */
function isBase64(bare: string): boolean {
  return !/[^A-Za-z0-9+/]/.test(bare);
}

function withoutPadding(data: string): string {
  if (data.endsWith("==")) return data.slice(0, -2);
  return data.endsWith("=") ? data.slice(0, -1) : data;
}

function refuse(notes: ResultNotes, text: string): null {
  notes.add("RESULT_BINARY_INVALID", text);
  return null;
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 60)) : `of type ${typeof value}`;
}

/** The sentences a model reads when a tool's answer itself has nothing to show. One table, so that none is written twice. */
export const resultText = {
  noResult: "Tool returned no result",
  threw: "Invoking this tool produced an error. Detailed information is not available.",
  notJson: "Tool returned a result that cannot be represented in JSON.",
  unreadable: "Tool returned a result that cannot be read.",
  failedSilently: "Tool reported an error without details.",
  succeededSilently: "success",
} as const;

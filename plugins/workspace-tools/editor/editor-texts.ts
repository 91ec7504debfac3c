import { faultText } from "../fault-texts.ts";
import type { FileFault } from "../operations/open-file.ts";
import { maxEditedBytes, type TextFault } from "../operations/open-file.ts";
import type { Place } from "../operations/places.ts";

// The answers of the tools: in the words of Copilot's language server where it has the same tool, since its models are used to them.

export const nothingChanged = "Nothing was changed.";

export function editedText(paths: readonly string[]): string {
  return `The following files were successfully edited:\n${paths.join("\n")}`;
}

export const unchangedText = (path: string): string => `File ${path} has this content already.`;
export const createdText = (path: string): string => `Created file ${path}`;
export const existsText = (path: string): string =>
  `File ${path} already exists. ${nothingChanged} Use replace_string_in_file, or insert_edit_into_file, to change it.`;

export const identicalText = (path: string): string => `oldString and newString are identical for ${path}. ${nothingChanged}`;
export const emptyOldText = (path: string): string =>
  `oldString is empty, and ${path} is not. ${nothingChanged} Give the text to replace, or the complete content with insert_edit_into_file.`;
export const severalText = (path: string, count: number): string =>
  `Found multiple matches for oldString in ${path}: it occurs ${count} times. ${nothingChanged} Include more lines before and after the one that you mean.`;

export function notFoundText(path: string, near: number | undefined): string {
  const hint =
    near === undefined ? "Read the file and try again." : `The text at line ${near} differs only in whitespace: read it and try again.`;
  return `Could not find oldString in ${path}: it must match the file exactly, including whitespace and line breaks. ${nothingChanged} ${hint}`;
}

export function unclearText(path: string, why: string): string {
  return `The code cannot be placed in ${path} unambiguously: ${why}. ${nothingChanged} Repeat unchanged lines directly before and after each change, with "...existing code..." comments for all others; or use replace_string_in_file; or give the complete content without such comments.`;
}

export const elidedNewText = (path: string): string =>
  `File ${path} does not exist, so there is no existing code that "...existing code..." could stand for. Give its complete content.`;

export const unwritableText = (path: string, isOneOfMany: boolean): string =>
  `File ${path} cannot be written. ${isOneOfMany ? "No file was changed." : nothingChanged}`;

const textFaults: { readonly [F in TextFault]?: (path: string) => string } = {
  "too-large": (path) => `File ${path} is larger than the ${maxEditedBytes / 1024 / 1024} MB that can be edited. ${nothingChanged}`,
  binary: (path) => `File ${path} is binary and cannot be edited.`,
  encoding: (path) => `File ${path} is not valid UTF-8, and editing it would damage it. ${nothingChanged}`,
};

/** Why the text of a file cannot be read. */
export function textFaultText(fault: TextFault, place: Place): string {
  return textFaults[fault]?.(place.path) ?? faultText(fault as FileFault, place);
}

/** The beginning and the end of a long text: a program prints what it does first and its outcome last. */
export function middleCut(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = Math.floor(max / 3);
  const tail = max - head;
  return `${text.slice(0, head)}\n[${text.length - head - tail} characters of output omitted.]\n${text.slice(-tail)}`;
}

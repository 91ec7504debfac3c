import { faultText } from "../fault-texts.ts";
import type { FileFault } from "../operations/open-file.ts";
import type { Place } from "../operations/places.ts";
import { maxEditedBytes, type TextFault } from "../operations/read-text.ts";

// What the tools answer: by the words of Copilot's language server for those of its own, so that its models read on as they are used to.

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
  `oldString is empty, and ${path} is not. ${nothingChanged} Name the text to replace, or give the whole content with insert_edit_into_file.`;
export const severalText = (path: string, count: number): string =>
  `Found multiple matches for oldString in ${path}: it stands there ${count} times. ${nothingChanged} Take in more lines before and after the one that you mean.`;

export function notFoundText(path: string, near: number | undefined): string {
  const hint =
    near === undefined
      ? "Read the file and try again."
      : `What stands at line ${near} differs from it in white space only: read that and try again.`;
  return `Could not find oldString in ${path}: it must be exactly what the file has, white space and line breaks included. ${nothingChanged} ${hint}`;
}

export function unclearText(path: string, why: string): string {
  return `The code cannot be put into ${path} for sure: ${why}. ${nothingChanged} Repeat unchanged lines right before and after each change, with "...existing code..." comments for all others; or use replace_string_in_file; or give the whole content without such comments.`;
}

export const elidedNewText = (path: string): string =>
  `File ${path} does not exist, so there is no existing code that "...existing code..." could stand for. Give its whole content.`;

export const unwritableText = (path: string, isOneOfMany: boolean): string =>
  `File ${path} cannot be written. ${isOneOfMany ? "All files are as they were before." : nothingChanged}`;

const textFaults: { readonly [F in TextFault]?: (path: string) => string } = {
  "too-large": (path) => `File ${path} is larger than the ${maxEditedBytes / 1024 / 1024} MB that can be edited. ${nothingChanged}`,
  binary: (path) => `File ${path} is binary and cannot be edited.`,
  encoding: (path) => `File ${path} is not UTF-8 throughout, and editing it would damage the rest of it. ${nothingChanged}`,
};

/** Why the text of a file cannot be had. */
export function textFaultText(fault: TextFault, place: Place): string {
  return textFaults[fault]?.(place.path) ?? faultText(fault as FileFault, place);
}

/** The beginning and the end of a long text: a program says what it does first, and what came of it last. */
export function middleCut(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = Math.floor(max / 3);
  const tail = max - head;
  return `${text.slice(0, head)}\n[${text.length - head - tail} characters of the output are left out here.]\n${text.slice(-tail)}`;
}

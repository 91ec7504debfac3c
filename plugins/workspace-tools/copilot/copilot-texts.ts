// The answers of the Copilot runtime's tools, word for word where its recorded conversations contain them.

export const createdText = (path: string, characters: number): string => `Created file ${path} with ${characters} characters`;
export const editedText = (path: string): string => `File ${path} updated with changes.`;
export const existsText = (path: string): string => `Path ${path} already exists. Use edit to change an existing file.`;
export const imageText = "Viewed image file successfully.";
export const noMatchesText = "No matches found.";
export const noFilesText = "No files matched the pattern.";
export const interruptedText = "The execution of this tool, or a previous tool was interrupted.";
export const noShellsText = "<no active shell sessions>";

export function largeFileText(bytes: number): string {
  const size = (bytes / 1024).toFixed(1);
  return `File too large to read at once (${size} KB). Consider using the grep tool to search within the file, or view with view_range to read specific sections.`;
}

export const cutViewText = (line: number): string => `[Output truncated. Use view_range=[${line}, ...] to continue reading.]`;

export const noPassageText = (path: string): string =>
  `No match found in ${path}: old_str must match the file exactly, including whitespace and line breaks, without line numbers. View the file and try again.`;
export const ambiguousText = (path: string, count: number): string =>
  `Multiple matches found in ${path}: old_str occurs ${count} times. Include more lines around the one that you mean.`;

export const exitText = (code: number): string => `<exited with exit code ${code}>`;
export const laterExitText = (id: string, code: number): string => `<command with id: ${id} exited with exit code ${code}>`;
export const stoppedText = (id: string): string => `<command with id: ${id} stopped>`;
export const startedText = (id: string): string => `<command started in background with shellId: ${id}>`;
export const detachedText = (id: string): string => `<command started in detached background with shellId: ${id}>`;

export function runningText(id: string, seconds: number, hasOutput: boolean): string {
  const advice = hasOutput
    ? "The command is still running. Check the output above - if it looks like the command is waiting for input, use write_bash to provide it. Otherwise, use read_bash to continue waiting for output, or stop_bash to stop it."
    : "The command is still running but hasn't produced output yet. It may be waiting for input or still processing. Use read_bash to continue waiting, write_bash if you think it needs input, or stop_bash to stop it.";
  return `<command with shellId: ${id} is still running after ${seconds} seconds. ${advice}>`;
}

export const unknownShellText = (id: string, known: readonly string[]): string =>
  `There is no shell with the shellId ${JSON.stringify(id.slice(0, 100))}. ${known.length === 0 ? noShellsText : `The shells are ${known.join(", ")}.`}`;

export const fetchedText = (url: string, content: string): string => `Contents of ${url}:\n${content}`;
export const cutFetchText = (next: number): string =>
  `\n\n<error>Content truncated. Call the web_fetch tool with a start_index of ${next} to get more content.</error>`;
export const fetchEndText = "<error>No more content available.</error>";

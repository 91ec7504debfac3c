import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";
import { createInterface } from "node:readline";
import { defineTool } from "skillhost";

interface Arguments {
  readonly path: string;
  readonly text: string;
}

const mostMatches = 50;

export default defineTool<Arguments>("search_lines", {
  description: "Returns the lines of a file that contain a text, with their numbers. Reads files of any size.",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", minLength: 1, description: "Path of the file, relative to the working directory." },
      text: { type: "string", minLength: 1, description: "The text to find. Case-sensitive." },
    },
    required: ["path", "text"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  // Reporting progress restarts the timeout, so this is the longest time without progress.
  timeout: 30_000,
  async handler({ path, text }, { workingDirectory, signal }, { progress }) {
    const folder = await realpath(workingDirectory);
    const file = await realpath(resolve(folder, path)).catch(() => undefined);
    if (file === undefined) return { textResultForLlm: `The file ${path} does not exist.`, resultType: "failure" };
    // Links were followed, so this compares real places.
    if (relative(folder, file).split(sep)[0] === "..")
      return { textResultForLlm: "The path must be inside the working directory.", resultType: "failure" };
    const total = (await stat(file)).size;
    const matches: string[] = [];
    let [number, read, reported] = [0, 0, 0];
    // The signal ends the stream when the call is cancelled.
    for await (const line of createInterface({ input: createReadStream(file, { signal }), crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1;
      read += Buffer.byteLength(line) + 1;
      if (line.includes(text)) matches.push(`${number}: ${line}`);
      if (matches.length === mostMatches) return [...matches, "… and maybe more. Search for a longer text."].join("\n");
      if (read - reported < 1_000_000) continue;
      reported = read;
      progress({ progress: read, total, message: `${number} lines read` });
    }
    return matches.length === 0 ? `No line of ${path} contains "${text}".` : matches.join("\n");
  },
});

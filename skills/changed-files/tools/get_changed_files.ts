import { realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { defineTool } from "skillhost";
import { findObstacle, listNames } from "./_git.ts";

type State = "staged" | "unstaged" | "untracked";

interface ChangedFilesArguments {
  readonly repositoryPath?: string;
  readonly sourceControlState?: "all" | State;
}

interface Section {
  readonly state: State;
  readonly heading: string;
  readonly command: readonly string[];
}

// `--relative` gives paths as `ls-files` does: from the folder asked about, and only those below it.
const sections: readonly Section[] = [
  {
    state: "staged",
    heading: "## Staged files",
    command: ["diff", "--cached", "--name-only", "--relative", "-z", "--ignore-submodules=dirty"],
  },
  { state: "unstaged", heading: "## Unstaged changes", command: ["diff", "--name-only", "--relative", "-z", "--ignore-submodules=dirty"] },
  { state: "untracked", heading: "## Untracked files", command: ["ls-files", "--others", "--exclude-standard", "-z"] },
];
const maxNames = 2000;

export default defineTool<ChangedFilesArguments>("get_changed_files", {
  title: "Get changed files",
  description:
    "Lists the files that differ from the last git commit: staged, unstaged and untracked ones, each under a heading of its own. Gives names, not contents, and changes nothing. Use it to find out what was worked on before reviewing, testing or committing it.",
  parameters: {
    type: "object",
    properties: {
      repositoryPath: {
        type: "string",
        description: "A folder of the git repository, relative to the working directory and inside it. Without it, the working directory.",
      },
      sourceControlState: {
        type: "string",
        enum: ["all", "staged", "unstaged", "untracked"],
        default: "all",
        description:
          "Which changes to list: everything, only what is staged for the next commit, only edits that are not staged, or only new files git does not track.",
      },
    },
    required: [],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  timeout: 60_000,
  async handler({ repositoryPath = ".", sourceControlState = "all" }, { workingDirectory, signal }) {
    const folder = await locate(workingDirectory, repositoryPath);
    if (!folder.ok) return failure(folder.reason);
    const obstacle = await findObstacle({ cwd: folder.path, signal });
    if (obstacle) return failure(obstacle.reason, obstacle.detail);
    const wanted = sections.filter(({ state }) => sourceControlState === "all" || sourceControlState === state);
    const parts: string[] = [];
    for (const { heading, command } of wanted) {
      const listed = await listNames(command, { cwd: folder.path, signal });
      if (!listed.ok) return failure(listed.reason, listed.detail);
      if (listed.names.length > 0) parts.push(`${heading}\n${formatNames(listed.names)}`);
    }
    return parts.length > 0 ? parts.join("\n\n") : "No changed files found.";
  },
});

/** `error` goes to the log; the model reads only the text, which names nothing of the host. */
function failure(textResultForLlm: string, error = textResultForLlm): object {
  return { textResultForLlm, resultType: "failure", error };
}

type Located = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly reason: string };

/** The folder that is meant, if it is one and lies in the working directory, links followed. */
async function locate(workingDirectory: string, path: string): Promise<Located> {
  try {
    const base = await realpath(workingDirectory);
    const target = await realpath(resolve(base, path));
    const way = relative(base, target);
    if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way))
      return { ok: false, reason: `"${path}" lies outside the working directory. Give a folder inside it.` };
    return (await stat(target)).isDirectory() ? { ok: true, path: target } : { ok: false, reason: `"${path}" is not a folder.` };
  } catch {
    // What cannot be resolved is not there, may not be entered, or is no path at all; the answer is the same.
    return { ok: false, reason: `There is no folder "${path}" in the working directory.` };
  }
}

function formatNames(names: readonly string[]): string {
  const shown = names.slice(0, maxNames).map(printable);
  return (names.length > maxNames ? [...shown, `… and ${names.length - maxNames} more`] : shown).join("\n");
}

/** A name may hold anything but NUL and `/`. One that would break the list is written as a JSON string. */
function printable(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return /[\u0000-\u001f\u007f\u2028\u2029"]/.test(name) ? JSON.stringify(name) : name;
}

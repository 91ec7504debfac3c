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

// `--relative` makes `diff` list paths as `ls-files` does: relative to the current folder, and only those below it.
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
    "Lists the staged, unstaged and untracked files of a git repository, each under a heading. Returns names, not contents, and changes nothing. Use it to find out what changed before reviewing, testing or committing it.",
  parameters: {
    type: "object",
    properties: {
      repositoryPath: {
        type: "string",
        description: "Folder of the git repository, relative to the working directory and inside it. Default: the working directory.",
      },
      sourceControlState: {
        type: "string",
        enum: ["all", "staged", "unstaged", "untracked"],
        default: "all",
        description:
          "Which files to list: all, only those staged for the next commit, only those with unstaged edits, or only new files that git does not track.",
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

/** `error` is only logged. The model reads the text, which must not contain paths of the host. */
function failure(textResultForLlm: string, error = textResultForLlm): object {
  return { textResultForLlm, resultType: "failure", error };
}

type Located = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly reason: string };

/** Resolves links. The folder must be in the working directory. */
async function locate(workingDirectory: string, path: string): Promise<Located> {
  try {
    const base = await realpath(workingDirectory);
    const target = await realpath(resolve(base, path));
    const way = relative(base, target);
    if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way))
      return { ok: false, reason: `"${path}" is outside the working directory. Give a folder inside it.` };
    return (await stat(target)).isDirectory() ? { ok: true, path: target } : { ok: false, reason: `"${path}" is not a folder.` };
  } catch {
    // The answer is the same for a folder that does not exist, one that may not be read, and an invalid path.
    return { ok: false, reason: `The folder "${path}" was not found in the working directory.` };
  }
}

function formatNames(names: readonly string[]): string {
  const shown = names.slice(0, maxNames).map(printable);
  return (names.length > maxNames ? [...shown, `… and ${names.length - maxNames} more`] : shown).join("\n");
}

/** File names may contain any character but NUL and `/`. A name that would break the list is written as a JSON string. */
function printable(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern is meant to match control characters
  return /[\u0000-\u001f\u007f\u2028\u2029"]/.test(name) ? JSON.stringify(name) : name;
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openExchanged, secret } from "./exchanged-folders.ts";

export interface RoundsResult {
  /** Calls by tool that showed files outside. */
  readonly shown: Readonly<Record<string, number>>;
  /** Files that were created or changed outside. */
  readonly traces: readonly string[];
  /** Successful calls: without any, nothing would have been tested. */
  readonly done: number;
}

type Call = readonly [tool: string, args: object];

const copilot = (round: number): readonly Call[] => [
  ["view", { path: "sub/a.txt" }],
  ["view", { path: "sub/deep/b.txt" }],
  ["grep", { pattern: ".*", paths: ["sub"], output_mode: "content" }],
  ["grep", { pattern: ".*", path: "sub/deep/b.txt", output_mode: "content" }],
  ["create", { path: `sub/new-${round}.txt`, file_text: "mine" }],
  ["create", { path: `sub/made-${round}/deep/new.txt`, file_text: "mine" }],
  ["edit", { path: "sub/edited.txt", old_str: "", new_str: "" }],
  ["edit", { path: "sub/edited.txt", old_str: "inside", new_str: "inside" }],
  ["edit", { path: "sub/edited.txt", old_str: secret, new_str: "changed" }],
];

const editor = (round: number): readonly Call[] => [
  ["read_file", { filePath: "sub/a.txt" }],
  ["grep_search", { query: "SECRET" }],
  ["create_file", { filePath: `sub/new-${round}.txt`, content: "mine" }],
  ["create_directory", { dirPath: `sub/folder-${round}/deep` }],
  ["replace_string_in_file", { filePath: "sub/edited.txt", oldString: secret, newString: "changed" }],
  ["insert_edit_into_file", { filePath: "sub/edited.txt", code: "inside\n" }],
  ["apply_patch", { input: `*** Begin Patch\n*** Add File: sub/patched-${round}.txt\n+mine\n*** End Patch` }],
  ["apply_patch", { input: "*** Begin Patch\n*** Delete File: sub/gone.txt\n*** End Patch" }],
  ["apply_patch", { input: "*** Begin Patch\n*** Add File: sub/gone.txt\n+inside\n*** End Patch" }],
];

/** Calls every tool that reads or writes files repeatedly while their folder is replaced. */
export async function callWhileExchanged(presentation: "copilot" | "editor", rounds: number): Promise<RoundsResult> {
  const { workspace, outside, traces } = await openExchanged({ presentation });
  const shown: Record<string, number> = {};
  let done = 0;
  for (let round = 0; round < rounds; round++) {
    const calls = presentation === "copilot" ? copilot(round) : editor(round);
    const results = await Promise.all(calls.map(([tool, args]) => workspace.call(tool, args)));
    for (const [index, { resultType, textResultForLlm }] of results.entries()) {
      const [tool] = calls[index]!;
      if (resultType === "success") done++;
      if (textResultForLlm.includes(secret)) shown[tool] = (shown[tool] ?? 0) + 1;
    }
  }
  const kept = ["a.txt", "edited.txt", "gone.txt", "deep/b.txt"];
  const changed = kept.filter((file) => readTextOf(join(outside, file)) !== `${secret}\n`);
  return { shown, traces: [...traces(), ...changed], done };
}

function readTextOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It was deleted.
    return undefined;
  }
}

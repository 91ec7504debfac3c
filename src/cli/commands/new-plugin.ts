import { join } from "node:path";
import { isPluginName } from "../../plugin-host/define-plugin.ts";
import { usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { pluginFiles } from "../scaffold-plugin.ts";
import { visibleLine } from "../visible-text.ts";
import { assertOwnPlace, testHint, writeTrusted } from "../write-scaffold.ts";

/** Makes a plugin below `plugins`, with a test. */
export async function newPlugin(context: CommandContext, name: string): Promise<number> {
  const { io, out } = context;
  if (!isPluginName(name)) {
    const what = 'must be up to 64 letters, digits, ".", "_" and "-", beginning with a letter or digit';
    throw usageError(`A plugin's name ${what}: ${visibleLine(name)} is none.`);
  }
  const folder = join(io.cwd, "plugins", name);
  assertOwnPlace(context, folder);
  const files = await writeTrusted(context, folder, pluginFiles(name));
  const test = files.find((file) => file.endsWith(".test.mjs"))!;
  const next = [
    testHint(context, test),
    `Name it in skillhost.json: { "plugins": ["./plugins/${name}"] }, or createHost({ plugins: ["./plugins/${name}"] }).`,
  ];
  if (out.isJson) out.envelope({ ok: true, data: { folder, files, next }, diagnostics: [] });
  else for (const file of files) out.line(out.path(file));
  for (const step of next) out.note(step);
  return 0;
}

import { join } from "node:path";
import { type HookCommand, parseHookConfig } from "../../formats/plugins/hook-config.ts";
import type { JsonPath } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import type { BundleFiles } from "./bundle-files.ts";
import type { Sources } from "./component-sources.ts";
import { createMatcher } from "./hooks/match-hook.ts";

const usualFiles: Readonly<Record<string, readonly string[]>> = {
  claude: ["hooks/hooks.json"],
  copilot: ["hooks.json", "hooks/hooks.json"],
  codex: ["hooks/hooks.json"],
  gemini: ["hooks/hooks.json"],
};

/** Reads the hooks of a bundle. With `off` they are told and left out. */
export function loadHooks(files: BundleFiles, sources: Sources, mode: "run" | "off"): readonly HookCommand[] {
  const hooks = readAll(files, sources);
  if (mode === "run" || hooks.length === 0) return hooks;
  const message = `The ${hooks.length} hooks of this plugin are off: nobody named the plugin in the configuration or in an option.`;
  files.report({ severity: "info", code: "BUNDLE_HOOKS_OFF", message, file: sources.manifestFile });
  return [];
}

function readAll(files: BundleFiles, { dialect, given, manifestFile, manifestText }: Sources): readonly HookCommand[] {
  const read = (file: string, text: string, at?: JsonPath): readonly HookCommand[] => {
    const { hooks, diagnostics } = parseHookConfig(text, { file, dialect, at });
    diagnostics.forEach((found) => void files.report(found));
    return hooks.filter((hook) => isMatchable(files, hook, file));
  };
  const readFile = (file: string): readonly HookCommand[] => {
    const text = files.read(file, maxJsonBytes);
    return text === undefined ? [] : read(file, text);
  };
  // Claude Code takes what the manifest names on top of the usual file; everybody else, instead of it.
  const places = dialect === "claude" || given.hooks === undefined ? (usualFiles[dialect] ?? []) : [];
  const usual = places.filter((path) => files.has(path, "file")).slice(0, 1);
  const named = given.hooks?.flatMap((source) => {
    if (source.kind === "inline") return read(manifestFile, manifestText, source.at);
    const file = files.find(source.path, { file: manifestFile, start: source.start });
    return file === undefined || usual.some((path) => join(files.root, path) === file) ? [] : readFile(file);
  });
  return [...usual.flatMap((path) => readFile(join(files.root, path))), ...(named ?? [])];
}

function isMatchable(files: BundleFiles, hook: HookCommand, file: string): boolean {
  if (createMatcher(hook) !== undefined) return true;
  const shown = JSON.stringify(hook.matcher?.slice(0, 200));
  const message = `The matcher ${shown} of ${hook.event} is no regular expression that can be used here (look-around and back-references cannot). The hook is left out.`;
  files.report({ severity: "error", code: "HOOK_MATCHER", message, file });
  return false;
}

import { join } from "node:path";
import { type HookCommand, parseHookConfig } from "../../formats/plugins/hook-config.ts";
import type { JsonPath } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { type BundleFiles, isLinkOut } from "./bundle-files.ts";
import type { Sources } from "./component-sources.ts";
import { createMatcher } from "./hooks/match-hook.ts";

const usualFiles: Readonly<Record<string, readonly string[]>> = {
  claude: ["hooks/hooks.json"],
  copilot: ["hooks.json", "hooks/hooks.json"],
  codex: ["hooks/hooks.json"],
  gemini: ["hooks/hooks.json"],
};

/**
 * Reads the hooks of a bundle. With `off` they are told and left out. Undefined: they cannot be read as they are written, so
 * the bundle must not be used, since they may be what keeps calls from being made.
 */
export function loadHooks(files: BundleFiles, sources: Sources, mode: "run" | "off"): readonly HookCommand[] | undefined {
  const hooks = readAll(files, sources);
  if (mode === "run" || hooks === undefined || hooks.length === 0) return mode === "run" ? hooks : (hooks ?? []);
  const message = `The ${hooks.length} hooks of this plugin are off: the plugin is not named in the configuration or in an option.`;
  files.report({ severity: "info", code: "BUNDLE_HOOKS_OFF", message, file: sources.manifestFile });
  return [];
}

/** Undefined: some of them cannot be read. */
function readAll(files: BundleFiles, { dialect, given }: Sources): readonly HookCommand[] | undefined {
  let isWhole = true;
  const lost = (): readonly HookCommand[] => {
    isWhole = false;
    return [];
  };
  const read = (file: string, text: string, at?: JsonPath): readonly HookCommand[] => {
    const config = parseHookConfig(text, { file, dialect, at });
    config.diagnostics.forEach((found) => void files.report(found));
    isWhole &&= config.isWhole;
    return config.hooks.filter((hook) => isMatchable(files, hook, file));
  };
  const readFile = (file: string): readonly HookCommand[] => {
    const text = files.read(file, maxJsonBytes);
    return text === undefined ? lost() : read(file, text);
  };
  // Claude Code takes what the manifest names on top of the usual file; everybody else, instead of it.
  const places = dialect === "claude" || given.hooks === undefined ? (usualFiles[dialect] ?? []) : [];
  const usual = places.filter((path) => files.has(path, "file") || isLinkOut(files, path)).slice(0, 1);
  const ofUsual = usual.flatMap((path) => (isLinkOut(files, path) ? lost() : readFile(join(files.root, path))));
  const named = given.hooks?.flatMap((source) => {
    if (source.kind === "inline") return read(source.file, source.text, source.at);
    const file = files.find(source.path, source);
    if (file === undefined) return lost();
    return usual.some((path) => join(files.root, path) === file) ? [] : readFile(file);
  });
  return isWhole ? [...ofUsual, ...(named ?? [])] : undefined;
}

function isMatchable(files: BundleFiles, hook: HookCommand, file: string): boolean {
  if (createMatcher(hook) !== undefined) return true;
  const shown = JSON.stringify(hook.matcher?.slice(0, 200));
  const message = `The matcher ${shown} of ${hook.event} is not a supported regular expression (look-around and back-references are not supported). The hook is ignored.`;
  files.report({ severity: "error", code: "HOOK_MATCHER", message, file });
  return false;
}

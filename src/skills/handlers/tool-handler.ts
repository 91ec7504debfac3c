import { HostError } from "../../base/errors.ts";
import { waitFor } from "../../base/wait.ts";
import type { ToolJson } from "../../formats/skills/tool-json.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import type { Scope } from "../../io/scope.ts";
import { handlerIn, isToolLike } from "../../tools/define/define-tool.ts";
import type { ToolContext, ToolInvocation } from "../../tools/tool.ts";
import type { CheckedFolder, FolderView } from "../../trust/checked-folder.ts";
import { pathInSkill } from "../load/skill-path.ts";
import type { ToolEntry } from "../load/tool-entries.ts";
import { adaptExecute, registerDisposer } from "../load/tool-module.ts";
import { CheckedPrograms } from "./checked-programs.ts";
import { createCommandHandler, createHttpHandler } from "./command-and-http.ts";
import type { Arguments } from "./fill-template.ts";

export type Handler = (args: Arguments, invocation: ToolInvocation, context: ToolContext) => unknown;

export interface HandlerPlace {
  readonly folder: string;
  /** Receives the files of the handler, now and when it runs. */
  readonly files: Set<string>;
  readonly loader: ModuleLoader;
  readonly scope: Scope;
  readonly importTimeout: number;
  /** See `ToolRights`. */
  readonly isUnrestricted: boolean;
  readonly view?: FolderView | undefined;
  /** If a signature is required: the only files that may be used. */
  readonly tree?: CheckedFolder | undefined;
}

/**
 * The handler of a tool JSON: its `handler`, otherwise the module of the same name beside it, otherwise none. Throws `HostError` for a
 * module that is missing or does not parse.
 */
export function handlerOf(tool: ToolJson, entry: ToolEntry, place: HandlerPlace): Handler | undefined {
  const spec = tool.handler;
  if (spec?.kind === "command") return createCommandHandler(spec, place.folder, programsOf(place));
  if (spec?.kind === "http") return createHttpHandler(spec, { guardsPrivateNetworks: !place.isUnrestricted });
  if (spec?.kind === "mcp") return (args, _invocation, context) => context.callTool(`${spec.server}/${spec.tool}`, args);
  if (spec?.kind === "module") return moduleHandler(moduleFile(spec.module, entry, place), tool.definition.name, spec.export, place);
  const sibling = entry.kind === "json" ? entry.sibling : undefined;
  return sibling === undefined ? undefined : moduleHandler(sibling, tool.definition.name, undefined, place);
}

function programsOf({ tree, scope }: HandlerPlace): CheckedPrograms | undefined {
  return tree && CheckedPrograms.of(tree, scope);
}

/** A path is relative to its tool JSON; in a manifest, to the skill. */
function moduleFile(path: string, entry: ToolEntry, { folder, view }: HandlerPlace): string {
  const directory = entry.kind === "inline" ? "" : entry.path.replace(/[^/]*$/, "");
  const within = pathInSkill(folder, directory + path, entry.file, view);
  if (!within.ok) throw new HostError(within.diagnostic.code, within.diagnostic.message);
  return within.path;
}

/**
 * Captures the module's sources now, so that errors show immediately and the published version can run later even if the files change.
 * Runs the module at the first call; concurrent first calls share one run, and a failed run is not kept.
 */
function moduleHandler(file: string, toolName: string, exportName: string | undefined, place: HandlerPlace): Handler {
  const prepared = place.loader.prepare(file, place.tree);
  for (const path of prepared.files) place.files.add(path);
  let ready: Handler | undefined;
  let loading: Promise<Handler> | undefined;

  const load = async (): Promise<Handler> => {
    try {
      const expired = () => new HostError("MODULE_TIMEOUT", `${file} did not finish loading within ${place.importTimeout} ms of waiting.`);
      const limits = { milliseconds: place.importTimeout, countsWaiting: true, signal: place.scope.signal, expired };
      const loaded = await waitFor(prepared.evaluate(place.scope), limits);
      for (const path of loaded.files) place.files.add(path);
      ready = pickHandler(loaded.exports, toolName, exportName, file);
      registerDisposer(loaded.exports["dispose"], place.scope);
      return ready;
    } finally {
      loading = undefined;
    }
  };
  return (args, invocation, context) => {
    if (ready) return ready(args, invocation, context);
    loading ??= load();
    return loading.then((handler) => handler(args, invocation, context));
  };
}

/**
 * The named export; otherwise the default export, `handler`, an export with the tool's name, or `execute`. A tool counts as its handler.
 */
function pickHandler(exports: Readonly<Record<string, unknown>>, toolName: string, exportName: string | undefined, file: string): Handler {
  const names = exportName === undefined ? ["default", "handler", toolName, "execute"] : [exportName];
  for (const name of names) {
    const value = Object.hasOwn(exports, name) ? exports[name] : undefined;
    const own = isToolLike(value) ? handlerIn(value) : undefined;
    if (own !== undefined) return own as Handler;
    if (typeof value === "function")
      return name === "execute" && exportName === undefined ? adaptExecute(value as never) : (value as Handler);
  }
  const wanted = exportName === undefined ? "a default export that is a function" : `a function named "${exportName}"`;
  throw new HostError("MODULE_NO_HANDLER", `${file} has no handler for the tool "${toolName}". Add ${wanted}.`);
}

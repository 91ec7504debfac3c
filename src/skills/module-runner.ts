import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { makeOffers } from "./make-offers.ts";
import { makeTools } from "./make-tools.ts";
import { definitionsOfModule } from "./tool-module.ts";
import type { ToolRunner } from "./tool-runner.ts";

export const moduleExtensions: readonly string[] = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx"];

/** Runs TypeScript and JavaScript in this process. A module that never stops computing stops the host: nothing here can end it. */
export function createModuleRunner(loader: ModuleLoader): ToolRunner {
  return {
    extensions: moduleExtensions,
    runsCheckedFiles: true,
    async load(file, target, scope) {
      const { exports, files } = await loader.load(file, scope, target.checked);
      const api = { skill: target.skill, signal: scope.signal, onDispose: scope.onDispose };
      const { tools, diagnostics, ...others } = await definitionsOfModule(exports, file, api, scope);
      const made = makeTools(tools, file, target);
      const offered = await makeOffers(others, file, target, scope);
      return { ...offered, tools: made.tools, files, diagnostics: [...diagnostics, ...made.diagnostics, ...offered.diagnostics] };
    },
  };
}

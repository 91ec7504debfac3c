import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import { createModuleRunner } from "../load/stage-tool.ts";
import { moduleExtensions } from "../load/tool-entries.ts";
import type { RunnerTarget, ToolRunner } from "../load/tool-runner.ts";
import { encloseProgramsOf } from "./enclosed-programs.ts";
import { createIsolatedRunner, type IsolatedRunnerOptions } from "./isolated-runner.ts";
import { type Isolation, type IsolationTier, tierFor } from "./isolation-policy.ts";

interface SkillRunnerOptions extends IsolatedRunnerOptions {
  readonly isolation: Isolation;
}

/** Runs TypeScript and JavaScript of skills, each where the policy says. */
export function createSkillRunner(loader: ModuleLoader, { isolation, ...options }: SkillRunnerOptions): ToolRunner {
  const inProcess = createModuleRunner(loader);
  if (isolation === "off") return inProcess;
  const isolated = new Map<IsolationTier, ToolRunner>();
  const runnerOf = ({ scope }: RunnerTarget): ToolRunner => {
    const tier = tierFor(isolation, scope);
    if (tier === "off") return inProcess;
    const runner = isolated.get(tier) ?? createIsolatedRunner(tier, options);
    isolated.set(tier, runner);
    return runner;
  };
  return {
    extensions: moduleExtensions,
    runsCheckedFiles: true,
    load: (file, target, scope) => runnerOf(target).load(file, target, scope),
    handler: (file, pick, target, scope) => runnerOf(target).handler?.(file, pick, target, scope),
    programs({ scope, permissions, skill: { folder } }) {
      return encloseProgramsOf(tierFor(isolation, scope), { permissions, place: { folder, workingDirectory: options.workingDirectory } });
    },
  };
}

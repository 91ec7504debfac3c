import type {
  Diagnostic,
  LoadedTools,
  PluginApi,
  RunnerTarget,
  Scope,
  Tool,
  ToolContext,
  ToolInvocation,
  ToolLike,
  ToolRunner,
} from "skillhost";
import type { CallListener, Fault, Reply } from "./python-process.ts";
import { type PythonDefinition, PythonWorker, type WorkerOptions } from "./python-worker.ts";

/**
 * Runs `.py` files. The files of one generation of a skill share a process; each new generation gets a new process without
 * state of earlier modules.
 */
export function createPythonRunner(api: Pick<PluginApi, "createTool">, options: WorkerOptions): ToolRunner {
  const workers = new Map<string, PythonWorker>();
  const workerFor = ({ skill, generation, checked }: RunnerTarget, scope: Scope): PythonWorker => {
    const key = `${skill.folder}#${generation}`;
    const known = workers.get(key);
    const worker = known?.checked === checked && known !== undefined ? known : new PythonWorker(skill.folder, options, checked);
    // The previous generation cannot load files any more; only its tools keep it alive.
    workers.delete(`${skill.folder}#${generation - 1}`);
    workers.set(key, worker);
    worker.retain();
    scope.onDispose(() => {
      const released = worker.release();
      // A folder that is added again starts with generation 1.
      if (!worker.isUsed && workers.get(key) === worker) workers.delete(key);
      return released;
    });
    return worker;
  };
  return {
    extensions: [".py"],
    runsCheckedFiles: true,
    async load(file, target, scope) {
      const worker = workerFor(target, scope);
      const loaded = await worker.load(file);
      if (loaded.kind === "missing") return nothing(file, { code: "PYTHON_MISSING", message: loaded.message });
      if (loaded.kind === "faulty") return nothing(file, faultOf(file, loaded.fault), loaded.fault.files);
      const files = new Set([file, ...loaded.files]);
      if (loaded.tools.length === 0) return { tools: [], files, diagnostics: [noTools(file)] };
      return { ...makeTools(loaded.tools, { api, worker, file, target }), files };
    },
  };
}

interface Making {
  readonly api: Pick<PluginApi, "createTool">;
  readonly worker: PythonWorker;
  readonly file: string;
  readonly target: RunnerTarget;
}

function makeTools(definitions: readonly PythonDefinition[], making: Making): Pick<LoadedTools, "tools" | "diagnostics"> {
  const { api, file, target } = making;
  const diagnostics: Diagnostic[] = [];
  const tools = definitions.flatMap(({ definition, index }): Tool[] => {
    const tool = { ...definition, handler: handlerOf(index, making) } as unknown as ToolLike;
    try {
      return [
        api.createTool(tool, {
          ofSkill: { name: target.skill.name, file },
          generation: `${target.skill.folder}#${target.generation}`,
          onDiagnostic: (found) => void diagnostics.push({ file, ...found }),
        }),
      ];
    } catch (error) {
      diagnostics.push({ severity: "error", code: "TOOL_INVALID", file, message: error instanceof Error ? error.message : String(error) });
      return [];
    }
  });
  return { tools, diagnostics };
}

function handlerOf(index: number, { worker, file }: Making) {
  return async (args: unknown, invocation: ToolInvocation, context: ToolContext): Promise<unknown> => {
    const { signal, ...plain } = invocation;
    return resultOf(await worker.call({ file, index, args, invocation: plain, signal, listener: listenerFor(context) }));
  };
}

function resultOf(reply: Reply): unknown {
  if (!("fault" in reply)) return reply.value;
  const { kind, message, frames = [] } = reply.fault;
  if (kind === "arguments") return failure(`Invalid arguments: ${message}`);
  if (kind === "not-json") return failure("The tool returned something that is not valid JSON.", message);
  const error = new Error(message);
  // In the format of JavaScript stacks, which logs and terminals parse.
  if (frames.length > 0)
    error.stack = [message, ...frames.map(({ file, line, name }) => `    at ${name} (${file}:${line ?? 1}:1)`)].join("\n");
  throw error;
}

function failure(text: string, error: string = text): object {
  return { resultType: "failure", textResultForLlm: text, error };
}

function listenerFor(context: ToolContext): CallListener {
  return {
    notify(what, data) {
      if (what === "progress") context.progress(data);
      if (what === "file_changed") context.fileChanged(String(data["path"]), String(data["content"]));
    },
    ask(what, data) {
      if (what === "call_tool") return context.callTool(String(data["name"]), data["arguments"]);
      return context.ask(data["kind"] as "userInput", data["data"] as never);
    },
  };
}

function nothing(file: string, fault: Pick<Diagnostic, "code" | "message" | "file" | "range">, files: readonly string[] = []): LoadedTools {
  return { tools: [], files: new Set([file, ...files]), diagnostics: [{ severity: "error", file, ...fault }] };
}

function faultOf(
  file: string,
  { kind, message, file: place = file, line, column }: Fault,
): Pick<Diagnostic, "code" | "message" | "file" | "range"> {
  const start = { line: line ?? 1, column: Math.max(1, column ?? 1) };
  const at = line === undefined || line === null ? {} : { range: { start } };
  if (kind === "syntax") return { code: "PYTHON_SYNTAX", file: place, ...at, message: `This file does not parse: ${message}.` };
  if (kind === "untrusted") return { code: "MODULE_UNTRUSTED", file: place, ...at, message };
  if (kind === "ended") return { code: "PYTHON_ENDED", file, message };
  return { code: "PYTHON_THREW", file: place, ...at, message: `This file failed while it loaded: ${message}` };
}

function noTools(file: string): Diagnostic {
  const message =
    "This file defines no tool, so it did not run. Write SCHEMA and execute(tool_input, ctx), or decorate a function with define_tool of the module skillhost; a helper's name starts with an underscore.";
  return { severity: "info", code: "PYTHON_NO_TOOLS", file, message };
}

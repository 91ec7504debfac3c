import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { toError } from "../../base/errors.ts";
import { counted } from "../../base/text.ts";
import { whenAborted } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import type { Session } from "../../session/session.ts";
import { declareTools, generatedMark, type ToolsToDeclare } from "../../tools/schema/declare-tools.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { withHost } from "../open-host.ts";

export interface TypesOptions {
  readonly out?: string;
  readonly watch?: boolean;
}

const defaultFile = "skillhost-env.d.ts";

/** Writes the declarations of all tools to a file, with `watch` again after each change. The exit code is 1 if something could not be loaded. */
export function types(context: CommandContext, { out: given, watch = false }: TypesOptions): Promise<number> {
  const { io, out } = context;
  if (given !== undefined && !/\.d\.[cm]?ts$/.test(given))
    throw usageError("--out must be a file of declarations, such as src/tools.d.ts.");
  const file = resolve(io.cwd, given ?? defaultFile);
  return withHost(context, { watch }, async (host) => {
    const session = await host.createSession({ persist: false });
    await session.ready(io.signal);
    const first = await writeDeclarations(file, session);
    const errors = host.diagnostics.filter(({ severity }) => severity === "error");
    if (watch) {
      const report = (written: Written): void => {
        if (out.isJson) out.json({ type: "types", ...written });
        else out.line(sentence(written, context));
      };
      report(first);
      out.note("Watching for changes. Press Ctrl-C to stop.");
      await follow(host, session, file, context, report);
      return 0;
    }
    const ok = errors.length === 0;
    if (out.isJson) out.envelope({ ok, data: first, diagnostics: host.diagnostics });
    else out.line(sentence(first, context));
    if (!ok) out.note("Tools that could not be loaded are not declared.");
    return ok ? 0 : 1;
  });
}

interface Written {
  readonly file: string;
  /** False: it already had this text, so it was not touched. */
  readonly isChanged: boolean;
  readonly tools: readonly string[];
}

function sentence({ file, isChanged, tools }: Written, { out }: CommandContext): string {
  return `${isChanged ? "Wrote" : "Unchanged:"} ${out.path(file)}, ${counted(tools.length, "tool")}.`;
}

/** Writes again after each change until the command is stopped. */
async function follow(
  host: Host,
  session: Session,
  file: string,
  { io, out }: CommandContext,
  report: (written: Written) => void,
): Promise<void> {
  let writing: Promise<void> = Promise.resolve();
  const again = (): void => {
    writing = writing.then(async () => {
      try {
        const written = await writeDeclarations(file, session);
        if (written.isChanged) report(written);
      } catch (error) {
        out.complain(toError(error).message);
      }
    });
  };
  host.on("skills.changed", again);
  host.on("plugins.changed", again);
  // Servers add and withdraw tools at any time.
  session.on("session.tools_updated", again);
  // A save while the first text was written came before anyone listened.
  again();
  await whenAborted(io.signal);
  await writing;
}

/** @throws CliError `TYPES_FILE_TAKEN` for a file that this command has not written. */
async function writeDeclarations(file: string, session: Session): Promise<Written> {
  const tools = declaredTools(session);
  const text = declareTools(tools);
  const before = await readIfExists(file);
  if (before !== undefined && before !== "" && !before.startsWith(generatedMark)) {
    throw new CliError(
      "TYPES_FILE_TAKEN",
      `${file} was not written by "skillhost types", so it was not changed. Remove it, or name another file with --out.`,
      1,
    );
  }
  const isChanged = before !== text;
  if (isChanged) await writeFileAtomic(file, text);
  return { file, isChanged, tools: [...new Set([...tools.values()].map(({ definition }) => definition.name))].sort() };
}

/** The tools of skills, plugins and servers by their names, those with the source (`weather/get_weather`) too. */
function declaredTools({ catalog }: Session): ToolsToDeclare {
  const named = [...catalog.executables, ...catalog.byNamespacedName];
  return new Map(named.filter(([, { origin }]) => origin.kind !== "builtin"));
}

async function readIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

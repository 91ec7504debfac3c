import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { structuredPatch } from "diff";
import { errorMessage } from "../../base/errors.ts";
import type { TomlTable } from "../../formats/text/edit-toml.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { isReallyInside } from "../../io/confine-path.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { confirm } from "../confirm.ts";
import { clientCommand, isOwnEntry, servesSame } from "../connect/client-entry.ts";
import { entriesOf, printEntry, readClientFile, withEntry, withListed } from "../connect/client-file.ts";
import { type ClientPlaces, type ClientScope, clientPlaces, type McpClient, mcpClients } from "../connect/mcp-clients.ts";
import { visibleLine, visibleText } from "../terminal-style.ts";

export interface ConnectCommandOptions {
  readonly name?: string;
  readonly user?: boolean;
  readonly print?: boolean;
  readonly npx?: boolean;
  readonly allow?: readonly string[];
  readonly autoApprove?: boolean;
  readonly replace?: boolean;
  readonly yes?: boolean;
}

/** Adds an entry that serves the skills of this project to the configuration of a client. */
export async function connect(context: CommandContext, clientName: string, options: ConnectCommandOptions): Promise<number> {
  const { out } = context;
  const target = targetOf(context, clientName, options);
  const { client, file, name, places, scope } = target;
  const entry = entryFor(context, target, options);
  if (options.print === true) {
    if (out.isJson)
      out.envelope({ ok: true, data: { client: client.name, file, key: client.key, name, entry, changed: false }, diagnostics: [] });
    else {
      out.note(`In ${out.path(file)}:`);
      out.line(printEntry(client, name, entry).trimEnd());
    }
    return 0;
  }
  const read = readClientFile(file, client.format);
  const before = entriesOf(read, client.key)[name];
  if (before !== undefined) assertReplaceable(before, entry, target, options);
  const isSame = JSON.stringify(before) === JSON.stringify(entry);
  const edits = [{ file, before: read.text, after: isSame ? read.text : withEntry(read, client, name, entry) }];
  if (options.autoApprove === true && client.approval?.kind === "rules")
    edits.push(ruleEdit(client.approval.file(places, scope), name, true));
  const changed = await applyEdits(context, target, edits, { yes: options.yes === true, question: `Connect ${client.title}?` });
  if (changed === undefined) return 1;
  const data = { client: client.name, file, key: client.key, name, entry, changed: changed.length > 0, files: changed };
  if (out.isJson) out.envelope({ ok: true, data, diagnostics: [] });
  else if (changed.length === 0) out.line(`${client.title} is already connected: ${out.path(file)}.`);
  else out.line(`Connected ${client.title}: ${changed.map(out.path).join(", ")}.`);
  if (changed.length > 0) {
    out.note(client.next);
    out.note('Check it with "skillhost doctor".');
  }
  return 0;
}

/** Removes the entry from the configuration of a client. */
export async function disconnect(context: CommandContext, clientName: string, options: ConnectCommandOptions): Promise<number> {
  const { out } = context;
  const target = targetOf(context, clientName, options);
  const { client, file, name, places, scope } = target;
  const read = readClientFile(file, client.format);
  const before = entriesOf(read, client.key)[name];
  if (before === undefined) {
    if (out.isJson) out.envelope({ ok: true, data: { client: client.name, file, name, changed: false, files: [] }, diagnostics: [] });
    else out.line(`${client.title} is not connected: ${out.path(file)} has no entry "${visibleLine(name)}".`);
    return 0;
  }
  if (!isOwnEntry(before)) throw notOurs(target);
  const edits = [{ file, before: read.text, after: withEntry(read, client, name, undefined) }];
  if (client.approval?.kind === "rules") edits.push(ruleEdit(client.approval.file(places, scope), name, false));
  const changed = await applyEdits(context, target, edits, { yes: options.yes === true, question: `Disconnect ${client.title}?` });
  if (changed === undefined) return 1;
  if (out.isJson) out.envelope({ ok: true, data: { client: client.name, file, name, changed: true, files: changed }, diagnostics: [] });
  else out.line(`Disconnected ${client.title}: ${changed.map(out.path).join(", ")}.`);
  return 0;
}

/** Adds the entry to the files of a client and returns those that changed. For a project that was just created by the user's own command. */
export async function writeConnection(context: CommandContext, clientName: string): Promise<readonly string[]> {
  const target = targetOf(context, clientName, {});
  const { client, file, name } = target;
  const read = readClientFile(file, client.format);
  const entry = entryFor(context, target, {});
  const before = entriesOf(read, client.key)[name];
  if (before !== undefined) assertReplaceable(before, entry, target, {});
  const edits = [{ file, before: read.text, after: withEntry(read, client, name, entry) }];
  return (await applyEdits(context, target, edits, { yes: true, question: "" })) ?? [];
}

interface Target {
  readonly client: McpClient;
  readonly scope: ClientScope;
  readonly places: ClientPlaces;
  readonly file: string;
  readonly name: string;
}

function targetOf(
  { consent, io, out }: CommandContext,
  clientName: string,
  { name = "skillhost", user = false, autoApprove }: ConnectCommandOptions,
): Target {
  const client = mcpClients.find((each) => each.name === clientName)!;
  // Names become parts of tool names, and clients differ in what they accept.
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name))
    throw usageError(`"${visibleLine(name)}" is not a valid name of an entry: use up to 64 letters, digits, "_" and "-".`);
  if (autoApprove === true && client.approval === undefined) {
    throw usageError(`${client.title} has no setting for --auto-approve in its files. Allow the tools in its window when it asks.`);
  }
  const places = clientPlaces({ consent, io });
  const scope = user || client.project === undefined ? "user" : "project";
  const file = scope === "project" ? client.project!(places) : client.user(places);
  if (scope === "project" && !isReallyInside(places.project, file)) {
    const message = `${out.path(file)} points out of the project ${places.project}, so it was not changed. Use --user, or remove the link.`;
    throw new CliError("PATH_OUTSIDE", message, 1);
  }
  return { client, scope, places, file, name };
}

function entryFor(context: CommandContext, { client, places }: Target, options: ConnectCommandOptions): TomlTable {
  const command = clientCommand(context, { npx: options.npx === true, allow: options.allow ?? [] }, places.platform);
  return {
    ...client.fields,
    ...command,
    ...(client.takesCwd && { cwd: places.project }),
    ...(options.autoApprove === true && client.approval?.kind === "entry" && { [client.approval.field]: true }),
  };
}

function assertReplaceable(before: unknown, entry: TomlTable, target: Target, { replace = false }: ConnectCommandOptions): void {
  if (!isOwnEntry(before)) throw notOurs(target);
  if (replace || servesSame(before, entry)) return;
  const { file, name } = target;
  const advice = "Choose another name with --name, or replace it with --replace.";
  throw new CliError("CLIENT_ENTRY", `The entry "${name}" in ${file} serves other skills. Nothing was changed. ${advice}`, 1);
}

function notOurs({ file, name }: Target): CliError {
  const message = `The entry "${name}" in ${file} does not start skillhost, so it was not changed. Choose another name with --name.`;
  return new CliError("CLIENT_ENTRY", message, 1);
}

interface Edit {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

function ruleEdit(path: string, name: string, isListed: boolean): Edit {
  const read = readClientFile(path, "json");
  return { file: path, before: read.text, after: withListed(read, ["permissions", "allow"], `mcp__${name}`, isListed) };
}

/** Shows what changes, asks, and writes. The files that changed; undefined: the user declined. */
async function applyEdits(
  context: CommandContext,
  { scope, places }: Target,
  edits: readonly Edit[],
  { yes, question }: { readonly yes: boolean; readonly question: string },
): Promise<readonly string[] | undefined> {
  const { out } = context;
  const changes = edits.filter(({ before, after }) => before !== after);
  if (changes.length === 0) return [];
  for (const change of changes) for (const line of difference(change, out.path)) out.note(line);
  if (!yes && !(await confirm(context, { question, otherwise: "Review it, then run again with --yes, or use --print." }))) return undefined;
  for (const { file, after } of changes) {
    try {
      await mkdir(dirname(file), { recursive: true });
      // A client's own file may hold tokens, and may be a link to a folder of dotfiles.
      await writeFileAtomic(file, after, scope === "project" ? { inside: places.project } : { mode: 0o600 });
    } catch (error) {
      throw new CliError("FILE_NOT_WRITTEN", `${file} could not be written (${errorMessage(error)}). Check its permissions.`, 1);
    }
  }
  return changes.map(({ file }) => file);
}

function difference({ file, before, after }: Edit, path: (file: string) => string): readonly string[] {
  const { hunks } = structuredPatch(file, file, before, after, undefined, undefined, { context: 2 });
  return [
    `${path(file)}:`,
    ...hunks.flatMap(({ lines }) => lines.filter((line) => !line.startsWith("\\")).map((line) => `  ${visibleText(line)}`)),
  ];
}

import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { exactJson } from "../../base/untrusted-text.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import type { PinSubject } from "../../trust/pins/seen-pins.ts";
import type { ServerLists, SupervisedServer } from "../supervisor/server-lease.ts";
import { DefinitionCache, pinOwner } from "./held-definition.ts";
import { chooseNames, hashDigits, hashOfParts } from "./name-tools.ts";
import { contentOf, type ReadSkillEntry, readSkillEntry, remoteSkill, type SkillListing } from "./remote-skill.ts";
import type { Pinned, PinnedFound } from "./server-tools.ts";

/** A server and the skills that it lists. */
export interface ServerSkillNames {
  readonly name: string;
  readonly skills: readonly Pick<SkillListing, "uri" | "name" | "folder">[];
}

/**
 * Names the skills of servers: `<server>/<name>`. If two of them clash, which names of skills may, their folders are
 * added. The result is by the server's name, then by the address of the skill. Pure.
 */
export function nameSkills(servers: readonly ServerSkillNames[]): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const all = servers.flatMap(({ name: server, skills }) => skills.map((skill) => ({ server, skill })));
  const chosen = chooseNames(all, ({ server, skill }, level) => {
    if (level === 0) return `${server}/${skill.name}`;
    const digits = hashDigits[level - 2];
    if (level > 1 && digits === undefined) return undefined;
    return `${server}/${skill.folder}${digits === undefined ? "" : `-${hashOfParts([server, skill.uri], digits)}`}`;
  });
  const names = new Map<string, Map<string, string>>(servers.map(({ name }) => [name, new Map()]));
  for (const [index, { server, skill }] of all.entries()) names.get(server)!.set(skill.uri, chosen[index]!);
  return names;
}

/** The skills of one server (Skills extension, SEP-2640). */
export class ServerSkills {
  readonly #server: SupervisedServer;
  readonly #onChanged: () => void;
  readonly #made: DefinitionCache<Pinned<SkillEntry>> = new DefinitionCache();
  readonly #asking = new Set<string>();
  /** Entries that were fetched again. They replace those of the list that was current at the time. */
  #newer: { readonly of: ServerLists; readonly entries: Map<string, Json> } | undefined;

  /** `onChanged` is called when the entry of a skill differs from the one in the list. */
  constructor(server: SupervisedServer, onChanged: () => void) {
    this.#server = server;
    this.#onChanged = onChanged;
  }

  /** The valid entries of a list. */
  listings(lists: ServerLists | undefined): readonly SkillListing[] {
    return lists === undefined ? [] : this.#read(lists).flatMap((entry) => (entry.ok ? [entry.listing] : []));
  }

  make(lists: ServerLists, spec: McpServerSpec, names: ReadonlyMap<string, string>): PinnedFound<SkillEntry> {
    const found: Pinned<SkillEntry>[] = [];
    const diagnostics: Diagnostic[] = [];
    const owner = pinOwner(this.#server);
    for (const entry of this.#read(lists)) {
      if (!entry.ok) diagnostics.push(refused(spec.name, entry.uri, entry.reason));
      else found.push(this.#pinned(entry.listing, spec, names.get(entry.listing.uri)!, owner));
    }
    this.#made.sweep();
    return { found, diagnostics };
  }

  /** A skill that need not be listed. Rejects like the request, or with HostError `MCP_ANSWER` for anything but a skill. */
  async find(uri: string, spec: McpServerSpec, signal: AbortSignal | undefined): Promise<Pinned<SkillEntry>> {
    const entry = readSkillEntry((await this.#server.request("skills/get", { uri }, { signal }))["skill"]);
    if (!entry.ok || entry.listing.uri !== uri) throw noSkill(spec.name, uri, entry.ok ? "it returned a different skill" : entry.reason);
    const { listing } = entry;
    return pin(listing, pinOwner(this.#server), this.#entryOf(listing, spec, `${spec.name}/${listing.folder}`));
  }

  #read(lists: ServerLists): readonly ReadSkillEntry[] {
    const newer = this.#newer?.of === lists ? this.#newer.entries : undefined;
    const read = lists.skills.map((raw) => readSkillEntry(newer?.get(String(raw["uri"])) ?? raw));
    const counts = new Map<string, number>();
    for (const entry of read) if (entry.ok) counts.set(entry.listing.root, (counts.get(entry.listing.root) ?? 0) + 1);
    return read.map((entry) => {
      // It is unknown which of them is meant.
      if (!entry.ok || counts.get(entry.listing.root) === 1) return entry;
      return { ok: false, uri: entry.listing.uri, reason: "it is listed more than once" };
    });
  }

  #pinned(listing: SkillListing, spec: McpServerSpec, name: string, owner: string): Pinned<SkillEntry> {
    const content = contentOf(listing);
    return this.#made.getOrCreate(listing.uri, content, `${name} ${owner}`, () => pin(listing, owner, this.#entryOf(listing, spec, name)));
  }

  #entryOf(listing: SkillListing, spec: McpServerSpec, name: string): SkillEntry {
    const onMismatch = (): void => void this.#askAgain(listing.uri);
    return remoteSkill(listing, { server: this.#server, serverName: spec.name, name, onMismatch });
  }

  /** Recovers from an outdated entry by fetching the current one, which has not been approved yet. */
  async #askAgain(uri: string): Promise<void> {
    const { lists } = this.#server;
    if (lists === undefined || this.#asking.has(uri)) return;
    this.#asking.add(uri);
    try {
      const { skill } = await this.#server.request("skills/get", { uri });
      if (this.#newer?.of !== lists) this.#newer = { of: lists, entries: new Map() };
      this.#newer.entries.set(uri, skill as Json);
      this.#onChanged();
    } catch {
      // The outdated entry stays, and files that differ from it are rejected on each read.
    } finally {
      this.#asking.delete(uri);
    }
  }
}

/** Whether a later version can be distinguished from the approved one. */
export function canBePinned({ subject }: Pinned<SkillEntry>): boolean {
  return (subject.content as { readonly resources: unknown }).resources !== "dynamic";
}

export function diagnoseDynamic({ subject: { name } }: Pinned<SkillEntry>, source: string): Diagnostic {
  const why = "its files are generated when they are read, so an approval cannot be bound to them";
  const message = `MCP server "${source}", skill ${exactJson(name.slice(0, 200))}: ${why}. It is ignored. Turn pins off for this server to use it.`;
  return { severity: "warning", code: "MCP_SKILL_DYNAMIC", source, message };
}

function pin(listing: SkillListing, owner: string, value: SkillEntry): Pinned<SkillEntry> {
  const content = contentOf(listing);
  const subject: PinSubject = { kind: "mcp-skill", owner, name: listing.uri, digest: digestOf(content), content };
  return { subject, value };
}

function refused(source: string, uri: string | undefined, reason: string): Diagnostic {
  const which = uri === undefined ? "a skill" : `skill ${exactJson(uri.slice(0, 200))}`;
  const message = `MCP server "${source}", ${which}: ${visible(reason)}. The skill is ignored. Ask its author to fix it.`;
  return { severity: "error", code: "MCP_SKILL_INVALID", source, message };
}

function noSkill(source: string, uri: string, reason: string): HostError {
  const what = `MCP server "${source}" returned no valid skill for ${exactJson(uri.slice(0, 200))}`;
  return new HostError("MCP_ANSWER", `${what}: ${visible(reason)}.`);
}

/** Without quotes, since the reason quotes what a server wrote. */
function visible(reason: string): string {
  return exactJson(reason).slice(1, -1).replaceAll('\\"', '"');
}

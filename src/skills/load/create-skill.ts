import { realpathSync } from "node:fs";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import { HostError } from "../../base/errors.ts";
import { type CheckedTree, readTextFile } from "../../io/read-bounded.ts";
import type { Tool } from "../../tools/tool.ts";
import { FileResources } from "../prompts/resource-list.ts";
import type { SkillOffers } from "../prompts/skill-prompts.ts";
import type { Skill } from "../skill.ts";
import type { FolderListing } from "../store/folder-listing.ts";
import type { SkillText } from "./read-skill.ts";
import { pathInSkill } from "./skill-path.ts";

const maxResourceBytes = 32 * 1024 * 1024;

export interface SkillParts {
  readonly text: SkillText;
  readonly permissions: Skill["permissions"] | undefined;
  readonly tools: readonly Tool[];
  readonly uses: Skill["uses"];
  readonly offers: SkillOffers;
  readonly listing: FolderListing;
  readonly generation: number;
  readonly mayRun: boolean;
  readonly scope: Skill["scope"];
  /** If a signature is required: the only files that may be used. */
  readonly tree?: CheckedTree | undefined;
}

/** Assembles a generation of a skill from its text, its tools, its prompts and its resources. */
export function createSkill(folder: string, parts: SkillParts): Skill {
  return Object.freeze(new LoadedSkill(folder, parts));
}

/** A class, because an object with accessors of its own costs several times as much memory, and time for each access. */
class LoadedSkill implements Skill {
  readonly name: string;
  readonly description: string;
  readonly folder: string;
  declare readonly displayName?: string;
  declare readonly version?: string;
  declare readonly author?: unknown;
  readonly promptMode: Skill["promptMode"];
  readonly prompts: Skill["prompts"];
  readonly enabled: boolean;
  readonly mayRun: boolean;
  readonly scope: Skill["scope"];
  readonly hiddenFromModel: boolean;
  readonly tools: readonly Tool[];
  readonly offeredPrompts: Skill["offeredPrompts"];
  readonly resourceTemplates: Skill["resourceTemplates"];
  readonly files: Skill["files"];
  readonly mcpServers: Skill["mcpServers"];
  readonly requires: Skill["requires"];
  readonly engines: Skill["engines"];
  declare readonly permissions?: NonNullable<Skill["permissions"]>;
  readonly uses: Skill["uses"];
  readonly generation: number;
  readonly hasInstructions: boolean;
  readonly userInvocable: boolean;
  readonly #text: SkillText;
  readonly #offers: SkillOffers;
  readonly #tree: CheckedTree | undefined;
  #signature: string | undefined;

  constructor(folder: string, { text, permissions, tools, uses, offers, listing, generation, mayRun, scope, tree }: SkillParts) {
    const { manifest, document, name, description } = text;
    this.#text = text;
    this.#offers = offers;
    this.#tree = tree;
    this.name = name;
    this.description = description;
    this.folder = folder;
    this.scope = scope;
    if (manifest?.displayName !== undefined) this.displayName = manifest.displayName;
    if (manifest?.version !== undefined) this.version = manifest.version;
    if (manifest?.author !== undefined) this.author = manifest.author;
    this.promptMode = manifest?.promptMode ?? (manifest ? "eager" : "on-demand");
    this.prompts = text.prompts;
    this.enabled = manifest?.enabled ?? true;
    this.mayRun = mayRun;
    this.hiddenFromModel = document?.disableModelInvocation ?? false;
    this.tools = tools;
    this.offeredPrompts = offers.prompts;
    this.resourceTemplates = offers.resourceTemplates;
    this.files = new FileResources(listing, this, tree);
    this.mcpServers = manifest?.mcpServers ?? none;
    this.requires = manifest?.requires ?? none;
    this.engines = manifest?.engines ?? none;
    if (permissions) this.permissions = permissions;
    this.uses = uses;
    this.generation = generation;
    // Without a body, the prompts are the instructions; the model already has those of an eager skill.
    const { body } = text;
    this.hasInstructions = body === undefined ? this.promptMode === "on-demand" && text.prompts.length > 0 : !body.isBlank;
    this.userInvocable = document?.userInvocable ?? true;
  }

  get resources(): Skill["resources"] {
    return this.#offers.resources.resources;
  }

  get signature(): string {
    this.#signature ??= signatureOf(this.#text, this.tools);
    return this.#signature;
  }

  instructions(argumentsText?: string): Promise<string> {
    return Promise.resolve(instructionsOf(this.#text, argumentsText));
  }

  read(path: string): Promise<Uint8Array> {
    return readResource(this.folder, path, this.#tree);
  }
}

const none: Readonly<Record<string, never>> = Object.freeze({});

function instructionsOf({ document, body, prompts }: SkillText, argumentsText: string | undefined): string {
  if (body === undefined || document === undefined) {
    const given = argumentsText ? [`ARGUMENTS: ${argumentsText}`] : [];
    return [...prompts.map((prompt) => prompt.text), ...given].join("\n\n");
  }
  return body.expand(
    argumentsText,
    document.arguments?.map(({ name }) => name),
  );
}

function signatureOf(text: SkillText, tools: readonly Tool[]): string {
  const { name, description, body, prompts } = text;
  return sha256(canonicalJson({ name, description, body: body?.expand() ?? null, prompts, tools: tools.map((tool) => tool.signature) }));
}

async function readResource(folder: string, path: string, tree: CheckedTree | undefined): Promise<Uint8Array> {
  const confined = pathInSkill(tree?.folder ?? realFolder(folder), path, folder, tree);
  if (!confined.ok) throw new HostError("PATH_OUTSIDE", confined.diagnostic.message);
  const read = readTextFile(confined.path, maxResourceBytes, tree);
  if (!read.ok) throw new HostError(read.diagnostic.code, `${read.diagnostic.message} (${path})`);
  return read.bytes;
}

function realFolder(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch (cause) {
    throw new HostError("FILE_MISSING", `The folder ${folder} of this skill no longer exists.`, { cause });
  }
}

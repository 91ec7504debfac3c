import { realpathSync } from "node:fs";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import { HostError } from "../../base/errors.ts";
import { expandPrompt } from "../../formats/skills/expand-prompt.ts";
import { type CheckedTree, readTextFile } from "../../io/read-bounded.ts";
import type { Tool } from "../../tools/tool.ts";
import { createFileResources } from "../prompts/resource-list.ts";
import type { SkillOffers } from "../prompts/skill-prompts.ts";
import type { Skill } from "../skill.ts";
import type { FolderListing } from "../store/folder-listing.ts";
import type { SkillText } from "./read-skill.ts";
import { pathInSkill, pluginRootOf } from "./skill-path.ts";

const maxResourceBytes = 32 * 1024 * 1024;

export interface SkillParts {
  readonly text: SkillText;
  readonly tools: readonly Tool[];
  readonly uses: Skill["uses"];
  readonly offers: SkillOffers;
  readonly listing: FolderListing;
  readonly generation: number;
  readonly mayRun: boolean;
  /** If a signature is required: the only files that may be used. */
  readonly tree?: CheckedTree | undefined;
}

/** Assembles a generation of a skill from its text, its tools, its prompts and its resources. */
export function createSkill(folder: string, { text, tools, uses, offers, listing, generation, mayRun, tree }: SkillParts): Skill {
  const { manifest, document } = text;
  const read = (path: string): Promise<Uint8Array> => readResource(folder, path, tree);
  let signature: string | undefined;
  const promptMode = manifest?.promptMode ?? (manifest ? "eager" : "on-demand");
  return Object.freeze({
    name: text.name,
    description: text.description,
    folder,
    ...(manifest?.displayName === undefined ? {} : { displayName: manifest.displayName }),
    ...(manifest?.version === undefined ? {} : { version: manifest.version }),
    ...(manifest?.author === undefined ? {} : { author: manifest.author }),
    promptMode,
    prompts: text.prompts,
    enabled: manifest?.enabled ?? true,
    mayRun,
    hiddenFromModel: document?.disableModelInvocation ?? false,
    tools,
    offeredPrompts: offers.prompts,
    get resources() {
      return offers.resources.resources;
    },
    resourceTemplates: offers.resourceTemplates,
    files: createFileResources(listing, { name: text.name, description: text.description, read, tree }),
    mcpServers: manifest?.mcpServers ?? {},
    requires: manifest?.requires ?? {},
    engines: manifest?.engines ?? {},
    ...(manifest?.permissions && { permissions: manifest.permissions }),
    uses,
    generation,
    get signature() {
      signature ??= signatureOf(text, tools);
      return signature;
    },
    // Without a body, the prompts are the instructions; the model already has those of an eager skill.
    hasInstructions: text.body === undefined ? promptMode === "on-demand" && text.prompts.length > 0 : text.body.trim() !== "",
    userInvocable: document?.userInvocable ?? true,
    instructions: (argumentsText?: string) => Promise.resolve(instructionsOf(folder, text, argumentsText)),
    read,
  });
}

/** Expands placeholders in one pass: inserted text is never expanded again. */
function instructionsOf(folder: string, { document, body, prompts }: SkillText, argumentsText: string | undefined): string {
  if (body === undefined || document === undefined) {
    const given = argumentsText ? [`ARGUMENTS: ${argumentsText}`] : [];
    return [...prompts.map((prompt) => prompt.text), ...given].join("\n\n");
  }
  if (argumentsText === undefined) return body;
  const argumentNames = document.arguments?.map(({ name }) => name) ?? [];
  return expandPrompt(document.body, { baseDir: folder, pluginRoot: pluginRootOf(folder, document.body), argumentsText, argumentNames });
}

function signatureOf(text: SkillText, tools: readonly Tool[]): string {
  const { name, description, body, prompts } = text;
  return sha256(canonicalJson({ name, description, body: body ?? null, prompts, tools: tools.map((tool) => tool.signature) }));
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

import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { exactJson, findHidden, withoutHidden } from "../../base/untrusted-text.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { parseUriTemplate } from "../../tools/define/uri-template.ts";
import { copyJson } from "../../tools/json-copy.ts";
import type { CompletionContext, OfferContext, Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceContents, ResourceDefinition, ResourceTemplate, ResourceTemplateDefinition } from "../../tools/resource.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import type { CallRequestOptions } from "../connection/connection.ts";
import type { ServerLists, SupervisedServer } from "../supervisor/server-lease.ts";
import { appAddressIn, appMimeType } from "./app-address.ts";
import { DefinitionCache } from "./held-definition.ts";
import { type CompletionServer, callContextOf, completeRemotely, remotePrompt, texts } from "./remote-prompt.ts";

/** The part of a server that resources need. */
interface ResourceServer extends CompletionServer {
  readResource(uri: string, options?: CallRequestOptions): Promise<Json>;
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable>;
}

export interface RemoteResourceOptions {
  readonly server: ResourceServer;
  /** The server's name in the configuration. */
  readonly serverName: string;
  /** Identifies the connection: equal connections have the same value. */
  readonly generation: string;
  /** Whether the server announces changes. */
  readonly hasSubscriptions: boolean;
  /** Whether the server suggests values of variables. */
  readonly hasCompletions: boolean;
}

/** Creates the resource for a server's definition. Undefined: it has no address. @internal Exported for tests. */
export function remoteResource(raw: Json, options: RemoteResourceOptions): Resource | undefined {
  const { uri, size } = raw;
  if (typeof uri !== "string" || uri === "") return undefined;
  const definition: ResourceDefinition = Object.freeze({ uri, ...factsOf(raw, uri), ...(isSize(size) && { size }) });
  return Object.freeze({ definition, ...offerOf(definition, uri, options) } satisfies Resource);
}

/**
 * Creates the template for a server's definition.
 * @throws HostError `URI_TEMPLATE` when it does not determine which addresses belong to it.
 * @internal Exported for tests.
 */
export function remoteResourceTemplate(raw: Json, options: RemoteResourceOptions): ResourceTemplate | undefined {
  const { uriTemplate } = raw;
  if (typeof uriTemplate !== "string" || uriTemplate === "") return undefined;
  const template = parseUriTemplate(uriTemplate);
  const definition: ResourceTemplateDefinition = Object.freeze({ uriTemplate, ...factsOf(raw, uriTemplate) });
  const ref = { type: "ref/resource", uri: uriTemplate };
  return Object.freeze({
    definition,
    ...offerOf(definition, uriTemplate, options),
    match: (uri: string) => template.match(uri),
    ...(options.hasCompletions && {
      complete: (name: string, value: string, context: CompletionContext) =>
        completeRemotely(options.server, ref, { name, value }, context),
    }),
  } satisfies ResourceTemplate);
}

function offerOf(
  definition: object,
  nativeName: string,
  options: RemoteResourceOptions,
): Pick<Resource, "origin" | "revision" | "read" | "watch"> {
  const { server, serverName, generation, hasSubscriptions } = options;
  return {
    origin: Object.freeze({ kind: "mcp", source: serverName, nativeName }),
    revision: digestOf({ definition, generation }),
    async read(uri: string, context: OfferContext) {
      const { contents } = await server.readResource(uri, callContextOf(context, uri, { uri }));
      const copy = copyJson(contents);
      if (copy.ok && Array.isArray(copy.value) && copy.value.every(isContents)) return copy.value;
      throw new HostError("MCP_ANSWER", `MCP server "${serverName}" sent an invalid resource.`);
    },
    ...(hasSubscriptions && { watch: (uri: string, changed: () => void) => server.watchResource(uri, changed) }),
  };
}

function factsOf({ name, title, description, mimeType, annotations }: Json, address: string): Omit<ResourceDefinition, "uri" | "size"> {
  const kept = isRecord(annotations) ? copyJson(annotations) : undefined;
  return {
    name: (typeof name === "string" && withoutHidden(name)) || address,
    ...texts({ title, description, mimeType }),
    ...(kept?.ok === true && isRecord(kept.value) && { annotations: kept.value }),
  };
}

function isSize(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isContents(value: unknown): value is ResourceContents {
  if (!isRecord(value) || typeof value["uri"] !== "string") return false;
  const { text, blob, mimeType = "" } = value;
  return typeof mimeType === "string" && (typeof text === "string") !== (typeof blob === "string");
}

interface Offers {
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
}

/** The prompts and resources of one server. Each stays the same object while its definition is unchanged. */
export class ServerPromptsAndResources {
  readonly #server: SupervisedServer;
  readonly #prompts: DefinitionCache<Attempt<Prompt>> = new DefinitionCache();
  readonly #resources: DefinitionCache<Attempt<Resource>> = new DefinitionCache();
  readonly #templates: DefinitionCache<Attempt<ResourceTemplate>> = new DefinitionCache();

  constructor(server: SupervisedServer) {
    this.#server = server;
  }

  make(lists: ServerLists, { name: serverName }: McpServerSpec): { readonly offers: Offers; readonly diagnostics: readonly Diagnostic[] } {
    const { completions, resources: offered } = lists.capabilities;
    const options = {
      server: this.#server,
      serverName,
      generation: this.#server.status.id ?? serverName,
      hasCompletions: isRecord(completions),
      hasSubscriptions: isRecord(offered) && offered["subscribe"] === true,
    };
    const facts = JSON.stringify([options.generation, options.hasCompletions, options.hasSubscriptions]);
    const round = { facts, serverName };
    const prompts = makeAll("prompt", "name", lists.prompts, this.#prompts, (raw) => remotePrompt(raw, options), round);
    const resources = makeAll("resource", "uri", withApps(lists), this.#resources, (raw) => remoteResource(raw, options), round);
    const templates = makeAll(
      "resource template",
      "uriTemplate",
      lists.resourceTemplates,
      this.#templates,
      (raw) => remoteResourceTemplate(raw, options),
      round,
    );
    return {
      offers: { prompts: prompts.made, resources: resources.made, resourceTemplates: templates.made },
      diagnostics: [...prompts.diagnostics, ...resources.diagnostics, ...templates.diagnostics],
    };
  }
}

/** The resources of a server. It need not list pages that its tools name. */
function withApps({ resources, tools }: ServerLists): readonly Json[] {
  const addresses = new Set(tools.flatMap((tool) => appAddressIn(tool["_meta"]) ?? []));
  for (const { uri } of addresses.size === 0 ? [] : resources) if (typeof uri === "string") addresses.delete(uri);
  return addresses.size === 0 ? resources : [...resources, ...Array.from(addresses, (uri) => ({ uri, name: uri, mimeType: appMimeType }))];
}

/** What was created for a definition, or why nothing was. */
type Attempt<T> = { readonly value: T } | { readonly fault: string };

const maxShown = 5;

function makeAll<T>(
  what: string,
  key: string,
  list: readonly Json[],
  before: DefinitionCache<Attempt<T>>,
  make: (raw: Json) => T | undefined,
  { facts, serverName }: { readonly facts: string; readonly serverName: string },
): { readonly made: readonly T[]; readonly diagnostics: readonly Diagnostic[] } {
  const made: T[] = [];
  const faults: string[] = [];
  const hiding: string[] = [];
  const taken = new Set<string>();
  for (const raw of list) {
    const id = raw[key];
    if (typeof id !== "string" || id === "") faults.push(`one has no ${key}`);
    else if (taken.has(id)) faults.push(`${exactJson(id.slice(0, 80))} occurs twice; the first is used`);
    else {
      taken.add(id);
      if (hasHiddenText(raw)) hiding.push(exactJson(id.slice(0, 80)));
      const attempt = before.getOrCreate(id, raw, facts, () => attemptTo(make, raw));
      if ("value" in attempt) made.push(attempt.value);
      else faults.push(attempt.fault);
    }
  }
  before.sweep();
  return {
    made,
    diagnostics: [
      ...(faults.length === 0 ? [] : [diagnose(what, faults, serverName)]),
      ...(hiding.length === 0 ? [] : [diagnoseHidden(what, hiding, serverName)]),
    ],
  };
}

/** In its name, title and description, and in those of its arguments. */
function hasHiddenText(raw: Json): boolean {
  const args = Array.isArray(raw["arguments"]) ? raw["arguments"].filter(isRecord) : [];
  return [raw, ...args].some((shown) =>
    [shown["name"], shown["title"], shown["description"]].some((text) => typeof text === "string" && findHidden(text) !== undefined),
  );
}

function diagnoseHidden(what: string, hiding: readonly string[], source: string): Diagnostic {
  const shown = hiding.slice(0, maxShown).join(", ");
  const more = hiding.length > maxShown ? ` and ${hiding.length - maxShown} more` : "";
  const message = `MCP server "${source}": texts of the ${what} ${shown}${more} contain invisible characters, which were removed. Ask the server's author to delete them.`;
  return { severity: "warning", code: "MCP_TEXT_HIDDEN", source, message };
}

function attemptTo<T>(make: (raw: Json) => T | undefined, raw: Json): Attempt<T> {
  try {
    const value = make(raw);
    return value === undefined ? { fault: "one has no name or URI" } : { value };
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return { fault: error.message };
  }
}

function diagnose(what: string, faults: readonly string[], source: string): Diagnostic {
  const shown = faults.slice(0, maxShown).join("; ");
  const more = faults.length > maxShown ? `; and ${faults.length - maxShown} more` : "";
  const message = `MCP server "${source}": some of its ${what}s are not valid: ${shown}${more}. Ask its author to fix them.`;
  return { severity: "warning", code: `MCP_${what.toUpperCase().replace(" ", "_")}_INVALID`, source, message };
}

import { HostError } from "../../base/errors.ts";
import { withoutHidden } from "../../base/hidden-characters.ts";
import { copyJson } from "../../tools/json-copy.ts";
import type { CompletionContext, OfferContext } from "../../tools/prompt.ts";
import type { Resource, ResourceContents, ResourceDefinition, ResourceTemplate, ResourceTemplateDefinition } from "../../tools/resource.ts";
import { isRecord } from "../../tools/schema/walk-schema.ts";
import { parseUriTemplate } from "../../tools/uri-template.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import type { CallRequestOptions } from "../connection/connection.ts";
import { callContextOf } from "./offer-context.ts";
import { type CompletionServer, completeRemotely, texts } from "./remote-prompt.ts";

type Json = Readonly<Record<string, unknown>>;

/** As much of a server as its resources need. */
export interface ResourceServer extends CompletionServer {
  readResource(uri: string, options?: CallRequestOptions): Promise<Json>;
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable>;
}

export interface RemoteResourceOptions {
  readonly server: ResourceServer;
  /** What the configuration calls the server. */
  readonly serverName: string;
  /** Names what is behind the resource: the same for equal connections. */
  readonly generation: string;
  /** The server tells of changes. */
  readonly hasSubscriptions: boolean;
  /** The server suggests values of variables. */
  readonly hasCompletions: boolean;
}

/** Makes the resource of a server's definition. Undefined: it has no address. */
export function remoteResource(raw: Json, options: RemoteResourceOptions): Resource | undefined {
  const { uri, size } = raw;
  if (typeof uri !== "string" || uri === "") return undefined;
  const definition: ResourceDefinition = Object.freeze({ uri, ...factsOf(raw, uri), ...(isSize(size) && { size }) });
  return Object.freeze({ definition, ...offerOf(definition, uri, options) } satisfies Resource);
}

/**
 * Makes the template of a server's definition.
 * @throws HostError `URI_TEMPLATE` when its addresses cannot be told from others.
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
      return readContents(await server.readResource(uri, callContextOf(context, uri, { uri })), serverName);
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

function readContents({ contents }: Json, serverName: string): readonly ResourceContents[] {
  const copy = copyJson(contents);
  if (copy.ok && Array.isArray(copy.value) && copy.value.every(isContents)) return copy.value;
  throw new HostError("MCP_ANSWER", `MCP server "${serverName}" answered with something that is not a resource.`);
}

function isContents(value: unknown): value is ResourceContents {
  if (!isRecord(value) || typeof value["uri"] !== "string") return false;
  const { text, blob, mimeType = "" } = value;
  return typeof mimeType === "string" && (typeof text === "string") !== (typeof blob === "string");
}

import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { kindOf, plain, toBlob } from "../define/content-block.ts";
import { complete } from "../define/define-prompt.ts";
import { type DefinedResource, isAddress, type ListedResource } from "../define/define-resource.ts";
import {
  mediaTypeOf,
  type Resource,
  type ResourceContents,
  type ResourceDefinition,
  type ResourceTemplate,
  type ResourceTemplateDefinition,
} from "../resource.ts";
import type { ToolOrigin } from "../tool.ts";

/** The origin of the resources, and the version of the code behind them. */
export interface ResourcePlace {
  readonly origin: Omit<ToolOrigin, "nativeName">;
  readonly generation: string;
}

/** Creates the resource that a host offers from a `defineResource` result without variables. */
export function createResource(defined: DefinedResource, place: ResourcePlace): Resource {
  const { uri, size } = defined;
  const facts = factsOf(defined, nameOf(uri));
  return assembleResource(Object.freeze({ uri, ...facts, ...(size !== undefined && { size }) }), defined, place);
}

/** Creates the template that a host offers from a `defineResource` result with variables. */
export function createResourceTemplate(defined: DefinedResource, place: ResourcePlace): ResourceTemplate {
  const template = defined.template!;
  const definition: ResourceTemplateDefinition = Object.freeze({
    uriTemplate: template.text,
    ...factsOf(defined, nameOf(template.text)),
  });
  const { complete: completers } = defined;
  const canComplete = Object.keys(completers).length > 0;
  return Object.freeze({
    definition,
    origin: originOf(place, template.text),
    revision: revisionOf(definition, place),
    match: (uri: string) => template.match(uri),
    ...behaviourOf(defined, definition.mimeType),
    ...(canComplete && {
      complete: (variable: string, value: string, context: Parameters<typeof complete>[2]) =>
        complete(completers[variable], value, context),
    }),
  });
}

/**
 * Creates one of the resources that the `list` of a template returned.
 * @throws TypeError for an invalid entry.
 */
export function createListedResource(listed: ListedResource, defined: DefinedResource, place: ResourcePlace): Resource {
  if (!isRecord(listed)) throw new TypeError(`it must be an object with a uri, not ${kindOf(listed)}`);
  const { uri, size, name, title, description, mimeType = defined.mimeType, annotations } = listed;
  if (typeof uri !== "string" || !isAddress(uri)) throw new TypeError(`${JSON.stringify(uri) ?? kindOf(uri)} is not a valid URI`);
  if (defined.template?.match(uri) === undefined) throw new TypeError(`the URI ${uri} does not match the template ${defined.uri}`);
  for (const [key, value] of Object.entries({ name, title, description, mimeType }))
    if (value !== undefined && typeof value !== "string") throw new TypeError(`${key} of ${uri} must be a string, not ${kindOf(value)}`);
  const facts = factsOf(
    { name, title, description, mimeType, annotations: annotations && (plain(annotations) as Readonly<Record<string, unknown>>) },
    nameOf(uri),
  );
  return assembleResource(Object.freeze({ uri, ...facts, ...(typeof size === "number" && { size }) }), defined, place);
}

function assembleResource(definition: ResourceDefinition, defined: DefinedResource, place: ResourcePlace): Resource {
  const mimeType = definition.mimeType ?? mediaTypeOf(definition.uri);
  return Object.freeze({
    definition: mimeType === undefined ? definition : Object.freeze({ ...definition, mimeType }),
    origin: originOf(place, definition.uri),
    revision: revisionOf(definition, place),
    ...behaviourOf(defined, mimeType),
  });
}

type Facts = Omit<ListedResource, "uri" | "size">;

function factsOf({ name, title, description, mimeType, annotations }: Facts, fallback: string): { readonly name: string } {
  return {
    name: name ?? fallback,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
    ...(annotations !== undefined && { annotations }),
  };
}

function nameOf(uri: string): string {
  return /([^/]+)\/*$/.exec(uri.replace(/^[^:]*:\/*/, ""))?.[1] ?? uri;
}

function originOf({ origin }: ResourcePlace, nativeName: string): ToolOrigin {
  return Object.freeze({ ...origin, nativeName });
}

function revisionOf(definition: object, { generation }: ResourcePlace): string {
  return sha256(canonicalJson({ definition, generation }));
}

function behaviourOf(defined: DefinedResource, mimeType: string | undefined): Pick<ResourceTemplate, "read" | "watch"> {
  const { template, read, watch } = defined;
  return {
    async read(uri, context) {
      const variables = template === undefined ? noVariables : template.match(uri);
      if (variables === undefined) throw unknownResource(uri);
      const reply = await read(uri, variables, context);
      if (reply === undefined || reply === null) throw unknownResource(uri);
      try {
        return Object.freeze((Array.isArray(reply) ? reply : [reply]).map((item) => toContent(item, uri, mimeType)));
      } catch (cause) {
        const message = `Reading ${uri} returned a value that is not content: ${errorMessage(cause)}. Return text, bytes, or { text } or { blob }.`;
        throw new HostError("RESOURCE_RESULT", message, { cause });
      }
    },
    ...(watch && {
      async watch(uri: string, changed: () => void) {
        let isOver = false;
        const end = await watch(uri, () => {
          if (!isOver) changed();
        });
        return {
          async [Symbol.asyncDispose]() {
            isOver = true;
            if (typeof end === "function") await end();
            else if (end !== undefined && Symbol.asyncDispose in end) await end[Symbol.asyncDispose]();
            else if (end !== undefined && Symbol.dispose in end) end[Symbol.dispose]();
          },
        };
      },
    }),
  };
}

const noVariables: Readonly<Record<string, string>> = Object.freeze(Object.create(null));

/** The error for a URI that no resource has. */
export function unknownResource(uri: string): HostError {
  const message = `Resource ${JSON.stringify(uri.slice(0, 300))} does not exist. List the resources and templates to see the available ones.`;
  return new HostError("RESOURCE_UNKNOWN", message);
}

function toContent(item: unknown, address: string, mimeType: string | undefined): ResourceContents {
  if (typeof item === "string") return Object.freeze({ uri: address, mimeType: typeAt(address, mimeType) ?? "text/plain", text: item });
  if (item instanceof Uint8Array) return toContent({ blob: item }, address, mimeType);
  if (!isRecord(item)) throw new TypeError(`it is ${kindOf(item)}`);
  const { uri = address, mimeType: own, text, blob } = item;
  if (typeof uri !== "string" || !(own === undefined || typeof own === "string"))
    throw new TypeError("its uri or mimeType is not a string");
  const type = own ?? (uri === address ? typeAt(uri, mimeType) : mediaTypeOf(uri));
  const others = plain({ ...item, text: undefined, blob: undefined }) as object;
  if (typeof text === "string") return Object.freeze({ ...others, uri, mimeType: type ?? "text/plain", text });
  if (text !== undefined) throw new TypeError(`its text is ${kindOf(text)}`);
  return Object.freeze({ ...others, uri, mimeType: type ?? "application/octet-stream", blob: toBlob(blob, "a string or a blob") });
}

function typeAt(uri: string, mimeType: string | undefined): string | undefined {
  return mimeType ?? mediaTypeOf(uri);
}

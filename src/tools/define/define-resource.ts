import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { OfferContext } from "../prompt.ts";
import { kindOf, plain } from "./content-block.ts";
import { type Completer, isCompleter } from "./define-prompt.ts";
import { parseUriTemplate, type UriTemplate } from "./uri-template.ts";

/** Marks what `defineResource` returns, also across copies of this package in one process. */
const resourceBrand: unique symbol = Symbol.for("skillhost.resource");

/** What a resource may return as its contents. */
export interface ResourceContentsLike {
  /** Default: the requested URI. */
  readonly uri?: string;
  readonly mimeType?: string;
  readonly text?: string;
  /** Bytes, or base64. */
  readonly blob?: string | Uint8Array;
}

/** What `read` may return: text, bytes, contents, or an array of them. Undefined or null: the resource does not exist. */
export type ResourceReply =
  | string
  | Uint8Array
  | ResourceContentsLike
  | readonly (string | Uint8Array | ResourceContentsLike)[]
  | undefined
  | null;

type MaybePromise<T> = T | Promise<T>;

/** Ends a watch. */
export type WatchEnd = (() => unknown) | Disposable | AsyncDisposable;

/** One of the resources that a template's `list` returns. */
export interface ListedResource {
  readonly uri: string;
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly mimeType?: string | undefined;
  /** In bytes. */
  readonly size?: number | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
}

/** What a function that lists resources receives. */
export interface ListContext {
  /** Fires when the module is replaced. */
  readonly signal: AbortSignal;
  /** Reports that the list has changed; `list` is called again. */
  changed(): void;
}

/**
 * Options of `defineResource`.
 *
 * @example
 * ```ts
 * const options: ResourceOptions = { description: "The style of texts.", read: () => "Write for users." };
 * ```
 */
export interface ResourceOptions {
  /** Default: the last part of the URI. */
  readonly name?: string | undefined;
  /** A display name. */
  readonly title?: string | undefined;
  /** What it contains, for people and models. Default: none. */
  readonly description?: string | undefined;
  /** Default: derived from the extension of the URI, otherwise from text or bytes. */
  readonly mimeType?: string | undefined;
  /** As in MCP: audience, priority, lastModified. */
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  /** In bytes, if known. Not for templates. */
  readonly size?: number | undefined;
  /** `variables` holds the values of a template's variables. They come from the client and may contain anything. */
  readonly read: (uri: string, variables: Readonly<Record<string, string>>, context: OfferContext) => MaybePromise<ResourceReply>;
  /** Calls `changed` whenever the content changes, until the returned value is called or disposed of. */
  readonly watch?: ((uri: string, changed: () => void) => MaybePromise<WatchEnd | undefined>) | undefined;
  /** For templates: suggests values, by variable. */
  readonly complete?: Readonly<Record<string, Completer>> | undefined;
  /** For templates: the resources to list. Called when the module loads, and after each `changed()`. */
  readonly list?: ((context: ListContext) => MaybePromise<readonly ListedResource[]>) | undefined;
}

/** A resource or a template as its author wrote it, not yet part of a host. Frozen. */
export interface DefinedResource extends Omit<ResourceOptions, "complete"> {
  readonly [resourceBrand]: true;
  readonly uri: string;
  /** Present when `uri` is a template. */
  readonly template: UriTemplate | undefined;
  readonly complete: Readonly<Record<string, Completer>>;
}

/**
 * Defines a resource that can be read by its URI, or, with variables in braces (RFC 6570, `notes://{year}/{name}`), a template for many
 * resources. Nothing is registered: a module exports it.
 * @throws HostError `RESOURCE_INVALID` naming the invalid field, `URI_TEMPLATE` for an invalid template.
 */
export function defineResource(uriOrTemplate: string, options: ResourceOptions): DefinedResource {
  const uri: unknown = uriOrTemplate;
  if (typeof uri !== "string" || !isAddress(uri))
    throw invalid('The first argument of defineResource must be a URI with a scheme, such as "notes://today".');
  if (!isRecord(options)) throw invalid(`Resource "${uri}": the options must be an object, not ${kindOf(options)}.`);
  const fields = readOptions(uri, options);
  const template = /[{}]/.test(uri) ? parseUriTemplate(uri) : undefined;
  checkFields(uri, fields, template);
  const complete = completersOf(uri, fields["complete"], template);
  const defined = { ...fields, annotations: annotationsOf(uri, fields["annotations"]), uri, template, complete, [resourceBrand]: true };
  return Object.freeze(defined) as unknown as DefinedResource;
}

/** Whether `defineResource` created this value. Never throws. */
export function isDefinedResource(value: unknown): value is DefinedResource {
  try {
    return typeof value === "object" && value !== null && (value as Partial<DefinedResource>)[resourceBrand] === true;
  } catch {
    // A proxy that throws is not a resource.
    return false;
  }
}

/** Whether this can be the URI of a resource: it has a scheme, and neither white space nor control characters. */
export function isAddress(uri: string): boolean {
  return uri.length <= 4096 && /^[A-Za-z][A-Za-z0-9+.-]*:[^\s\p{Cc}]+$/u.test(uri);
}

type Fields = Readonly<Record<string, unknown>>;

function readOptions(uri: string, options: Fields): Fields {
  try {
    const { name, title, description, mimeType, annotations, size, read, watch, complete, list } = options;
    return { name, title, description, mimeType, annotations, size, read, watch, complete, list };
  } catch (cause) {
    throw invalid(`Resource "${uri}": the options cannot be read, because a getter throws.`, cause);
  }
}

function checkFields(uri: string, fields: Fields, template: UriTemplate | undefined): void {
  const fail = (key: string, wanted: string): never => {
    throw invalid(`Resource "${uri}": ${key} must be ${wanted}, not ${kindOf(fields[key])}.`);
  };
  for (const key of ["name", "title", "description", "mimeType"])
    if (fields[key] !== undefined && typeof fields[key] !== "string") fail(key, "a string");
  if (typeof fields["read"] !== "function") fail("read", "a function");
  for (const key of ["watch", "list"]) if (fields[key] !== undefined && typeof fields[key] !== "function") fail(key, "a function");
  const { size } = fields;
  if (size !== undefined && !(typeof size === "number" && Number.isSafeInteger(size) && size >= 0)) fail("size", "a number of bytes");
  if (template !== undefined && size !== undefined) throw invalid(`Resource "${uri}": a template must not have a size.`);
  if (template === undefined && fields["list"] !== undefined) throw invalid(`Resource "${uri}": only a template can have a list.`);
}

function completersOf(uri: string, value: unknown, template: UriTemplate | undefined): Readonly<Record<string, Completer>> {
  const completers: Record<string, Completer> = Object.create(null);
  if (value === undefined) return completers;
  if (!isRecord(value)) throw invalid(`Resource "${uri}": complete must be an object with a function or array for each variable.`);
  for (const [name, completer] of Object.entries(value)) {
    if (!template?.variables.includes(name)) throw invalid(`Resource "${uri}": the template has no variable "${name}" to complete.`);
    if (!isCompleter(completer)) throw invalid(`Resource "${uri}": complete.${name} must be a function or an array of strings.`);
    completers[name] = completer;
  }
  return Object.freeze(completers);
}

function annotationsOf(uri: string, value: unknown): unknown {
  if (value === undefined) return undefined;
  try {
    if (isRecord(value)) return plain(value);
  } catch (cause) {
    throw invalid(`Resource "${uri}": annotations contain a value that JSON does not support.`, cause);
  }
  throw invalid(`Resource "${uri}": annotations must be an object, not ${kindOf(value)}.`);
}

function invalid(message: string, cause?: unknown): HostError {
  return new HostError("RESOURCE_INVALID", message, cause === undefined ? undefined : { cause });
}

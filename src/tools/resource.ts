import type { Completion, CompletionContext, OfferContext } from "./prompt.ts";
import type { ToolOrigin } from "./tool.ts";

interface ResourceFacts {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** As in MCP: audience, priority, lastModified. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export interface ResourceDefinition extends ResourceFacts {
  readonly uri: string;
  /** In bytes, if known. */
  readonly size?: number;
}

export interface ResourceTemplateDefinition extends ResourceFacts {
  /** RFC 6570, such as `notes://{year}/{name}`. */
  readonly uriTemplate: string;
}

/** One of text and blob; a blob is base64. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
}

/** A resource that can be read by its URI. Frozen; independent of sessions. */
export interface Resource {
  readonly definition: ResourceDefinition;
  readonly origin: ToolOrigin;
  /** Changes with the definition, with the code behind it and, if known, with the content. */
  readonly revision: string;
  read(uri: string, context: OfferContext): Promise<readonly ResourceContents[]>;
  /** Reports changes until it is disposed of. Absent: only `revision` shows them. */
  watch?(uri: string, changed: () => void): Disposable | Promise<Disposable | AsyncDisposable>;
}

/** Resources whose URIs follow a template. */
export interface ResourceTemplate {
  readonly definition: ResourceTemplateDefinition;
  readonly origin: ToolOrigin;
  readonly revision: string;
  /** The variable values in a matching URI; undefined when it does not match. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  read(uri: string, context: OfferContext): Promise<readonly ResourceContents[]>;
  watch?(uri: string, changed: () => void): Disposable | Promise<Disposable | AsyncDisposable>;
  /** Suggestions for a variable. Absent: there are none. */
  complete?(variable: string, value: string, context: CompletionContext): Promise<Completion>;
}

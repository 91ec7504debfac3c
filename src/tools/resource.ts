import type { Completion, CompletionContext, OfferContext } from "./prompt.ts";
import type { ToolOrigin } from "./tool.ts";

interface ResourceFacts {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** As MCP has it: audience, priority, lastModified. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export interface ResourceDefinition extends ResourceFacts {
  readonly uri: string;
  /** In bytes, where it is known. */
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

/** Something that can be read by its address. Frozen; it knows no session. */
export interface Resource {
  readonly definition: ResourceDefinition;
  readonly origin: ToolOrigin;
  /** Changes with the definition, with what is behind it, and, where that is known, with what a read gives. */
  readonly revision: string;
  read(uri: string, context: OfferContext): Promise<readonly ResourceContents[]>;
  /** Tells of changes until it is disposed of. Absent: only its revision tells. */
  watch?(uri: string, changed: () => void): Disposable | Promise<Disposable | AsyncDisposable>;
}

/** Many resources whose addresses follow a pattern. */
export interface ResourceTemplate {
  readonly definition: ResourceTemplateDefinition;
  readonly origin: ToolOrigin;
  readonly revision: string;
  /** The values of the variables in an address that fits; undefined: it does not. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  read(uri: string, context: OfferContext): Promise<readonly ResourceContents[]>;
  watch?(uri: string, changed: () => void): Disposable | Promise<Disposable | AsyncDisposable>;
  /** Suggestions for a variable. Absent: it has none. */
  complete?(variable: string, value: string, context: CompletionContext): Promise<Completion>;
}

import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError, toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { type DefinedPrompt, definePrompt } from "../../tools/define/define-prompt.ts";
import { type DefinedResource, defineResource, type ListedResource, type ResourceReply } from "../../tools/define/define-resource.ts";
import type { Completion, CompletionContext, OfferContext } from "../../tools/prompt.ts";
import type { ToolContext } from "../../tools/tool.ts";
import type { ChildFrame } from "./child-frames.ts";
import type { ChildRequestOptions } from "./skill-channel.ts";

/** The child behind prompts and resources. */
export interface OffersChild {
  request(kind: string, data: ChildFrame, options: ChildRequestOptions): Promise<unknown>;
  /** Returns the number with which the child reports changes. */
  listen(listener: ChangeListener): number;
  forget(listener: number): void;
}

/** What is to be done about changes in a child. */
export interface ChangeListener {
  changed(): void;
  /** Another child has to take the place of one that ended. */
  restored(): void;
}

/** Prompts and resources that a module in a child defines, as if they had been defined here. */
export interface IsolatedOffers {
  readonly prompts: readonly DefinedPrompt[];
  readonly resources: readonly DefinedResource[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Defines what a child described, whose code is untrusted: an invalid definition becomes a diagnostic. */
export function defineOffers(described: unknown, child: OffersChild, file: string): IsolatedOffers {
  const { prompts, resources } = isRecord(described) ? described : {};
  const diagnostics: Diagnostic[] = [];
  const define = <T>(items: unknown, make: (item: Fields, index: number) => T): readonly T[] =>
    (Array.isArray(items) ? items.slice(0, most) : []).flatMap((item: unknown, index): T[] => {
      try {
        return [make((isRecord(item) ? item : {}) as Fields, index)];
      } catch (error) {
        const code = error instanceof HostError ? error.code : "ISOLATION_OFFER";
        diagnostics.push({ severity: "error", code, file, message: toError(error).message });
        return [];
      }
    });
  return {
    prompts: define(prompts, (item, index) => promptOf(item, index, child)),
    resources: define(resources, (item, index) => resourceOf(item, index, child)),
    diagnostics,
  };
}

const most = 1_000;

type Fields = Readonly<Record<string, never>>;

function promptOf({ name, title, description, arguments: declared }: Fields, index: number, child: OffersChild): DefinedPrompt {
  const list = Array.isArray(declared) ? (declared as readonly Fields[]) : [];
  return definePrompt(name as never, {
    title,
    description,
    arguments: list.map((argument) => ({
      name: argument["name"]!,
      title: argument["title"],
      description: argument["description"],
      required: argument["required"],
      ...(argument["completes"] === true && { complete: completer("completePrompt", index, argument["name"]!, child) }),
    })),
    handler: (args, context) => child.request("prompt", { index, arguments: args }, optionsOf(context)) as Promise<never>,
  });
}

function resourceOf(fields: Fields, index: number, child: OffersChild): DefinedResource {
  const { uri, name, title, description, mimeType, annotations, size, completes, lists, watches } = fields;
  const completed = Array.isArray(completes) ? (completes as readonly string[]) : [];
  // A child that starts again gets the number of the same listener.
  let listListener: number | undefined;
  const list = async ({ signal, changed }: { readonly signal: AbortSignal; changed(): void }): Promise<readonly ListedResource[]> => {
    if (listListener === undefined) {
      const listener = child.listen({ changed, restored: changed });
      listListener = listener;
      signal.addEventListener("abort", () => child.forget(listener), { once: true });
    }
    return (await child.request("list", { index, listener: listListener }, {})) as readonly ListedResource[];
  };
  return defineResource(uri as never, {
    ...{ name, title, description, mimeType, annotations, size },
    read: async (address, _variables, context) =>
      (await child.request("read", { index, uri: address }, optionsOf(context))) as ResourceReply,
    ...(completed.length > 0 && {
      complete: Object.fromEntries(completed.map((variable) => [variable, completer("completeResource", index, variable, child)])),
    }),
    ...(lists === true && { list }),
    ...(watches === true && { watch: (address: string, changed: () => void) => watch({ index, uri: address }, changed, child) }),
  });
}

function completer(kind: string, index: number, argument: string, child: OffersChild) {
  return async (value: string, { arguments: given, signal }: CompletionContext): Promise<Completion> =>
    (await child.request(kind, { index, argument, value, arguments: given }, { signal })) as Completion;
}

/** Watches until the returned function is called, in each child that takes the place of the one before. */
async function watch(data: ChildFrame, changed: () => void, child: OffersChild): Promise<() => Promise<void>> {
  const restored = (): void => {
    child.request("watch", { ...data, listener }, {}).then(changed, () => {});
  };
  const listener = child.listen({ changed, restored });
  try {
    await child.request("watch", { ...data, listener }, {});
  } catch (error) {
    child.forget(listener);
    throw error;
  }
  return async () => {
    child.forget(listener);
    await child.request("unwatch", { listener }, {}).catch(() => {});
  };
}

/** The code of a prompt or a resource may ask, and nothing else. */
function optionsOf({ signal, ask, context }: OfferContext): ChildRequestOptions {
  return { context: { ask } as ToolContext, signal, ...(context !== undefined && { data: { context } }) };
}

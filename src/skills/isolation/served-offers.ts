import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { createPrompt } from "../../tools/create/create-prompt.ts";
import { createResource, createResourceTemplate } from "../../tools/create/create-resource.ts";
import type { DefinedPrompt } from "../../tools/define/define-prompt.ts";
import type { DefinedResource } from "../../tools/define/define-resource.ts";
import type { OfferContext, Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { ChildFrame } from "./child-frames.ts";

/** The prompts and resources of one file, in the child. */
export class ServedOffers {
  readonly #prompts: readonly DefinedPrompt[];
  readonly #resources: readonly DefinedResource[];
  readonly #made: { readonly prompts: readonly Prompt[]; readonly resources: readonly (Resource | ResourceTemplate)[] };
  readonly #watches = new Map<number, AsyncDisposable | Disposable>();
  readonly #signal: AbortSignal;
  readonly #changed: (listener: number) => void;

  /** `signal` fires when the file is unloaded; `changed` reports to the host that a list or a watched resource has changed. */
  constructor(
    { prompts, resources }: { readonly prompts: readonly DefinedPrompt[]; readonly resources: readonly DefinedResource[] },
    signal: AbortSignal,
    changed: (listener: number) => void,
  ) {
    this.#prompts = prompts;
    this.#resources = resources;
    this.#signal = signal;
    this.#changed = changed;
    // The host makes what clients see; this is only for the conversion of results.
    const origin = { kind: "skill", source: "", nativeName: "" } as const;
    const place = { origin, generation: "" };
    this.#made = {
      prompts: prompts.map((defined) => createPrompt(defined, origin, "")),
      resources: resources.map((defined) =>
        defined.template === undefined ? createResource(defined, place) : createResourceTemplate(defined, place),
      ),
    };
  }

  /** What the host needs to define the same, with functions that call this child. */
  describe(): object {
    return {
      prompts: this.#prompts.map(({ name, title, description, arguments: declared }) => ({
        name,
        title,
        description,
        arguments: declared.map(({ complete, ...argument }) => ({ ...argument, completes: complete !== undefined })),
      })),
      resources: this.#resources.map(({ uri, name, title, description, mimeType, annotations, size, ...functions }) => ({
        ...{ uri, name, title, description, mimeType, annotations, size },
        completes: Object.keys(functions.complete),
        lists: functions.list !== undefined,
        watches: functions.watch !== undefined,
      })),
    };
  }

  async run(frame: ChildFrame, context: OfferContext): Promise<unknown> {
    const index = Number(frame["index"]);
    const listener = Number(frame["listener"]);
    const changed = (): void => this.#changed(listener);
    const texts = (isRecord(frame["arguments"]) ? frame["arguments"] : {}) as Readonly<Record<string, string>>;
    const uri = String(frame["uri"]);
    const resource = this.#made.resources[index];
    switch (frame["kind"]) {
      case "prompt":
        return this.#made.prompts[index]?.get(texts, context);
      case "completePrompt":
      case "completeResource": {
        const made = frame["kind"] === "completePrompt" ? this.#made.prompts[index] : (resource as ResourceTemplate | undefined);
        return made?.complete?.(String(frame["argument"]), String(frame["value"]), { arguments: texts, signal: context.signal });
      }
      case "read":
        return this.#read(uri, resource, context);
      case "list":
        return this.#resources[index]?.list?.({ signal: this.#signal, changed });
      case "watch": {
        const watch = await resource?.watch?.(uri, changed);
        if (watch !== undefined) this.#watches.set(listener, watch);
        return null;
      }
      default: {
        const watch = this.#watches.get(listener);
        this.#watches.delete(listener);
        if (watch !== undefined && Symbol.asyncDispose in watch) await watch[Symbol.asyncDispose]();
        else watch?.[Symbol.dispose]();
        return null;
      }
    }
  }

  /** Undefined where the resource does not exist, which is not a failure of the code. */
  async #read(uri: string, resource: Resource | ResourceTemplate | undefined, context: OfferContext): Promise<unknown> {
    try {
      return await resource?.read(uri, context);
    } catch (error) {
      if (error instanceof HostError && error.code === "RESOURCE_UNKNOWN") return undefined;
      throw error;
    }
  }
}

/** The kinds of requests for prompts and resources. */
export const offerRequests: ReadonlySet<unknown> = new Set([
  ...["prompt", "completePrompt", "completeResource"],
  ...["read", "list", "watch", "unwatch"],
]);

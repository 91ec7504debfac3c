import { HostError } from "../base/errors.ts";
import { kindOf } from "../tools/content-block.ts";
import { createListedResource, type ResourcePlace } from "../tools/create-resource.ts";
import type { DefinedResource, ListedResource } from "../tools/define-resource.ts";
import type { Resource } from "../tools/resource.ts";
import type { ResourceSet } from "../tools/tool-source.ts";

export interface ResourceListOptions {
  /** Fires when the generation ends: nothing is listed after that. */
  readonly signal: AbortSignal;
  /** Another list has taken the place of the one before. */
  onChange(): void;
}

const most = 10_000;
const pause = 20;

/** What a template lists, once `refresh` has settled and again whenever its author says so; undefined: it lists nothing. */
export function createResourceList(
  defined: DefinedResource,
  place: ResourcePlace,
  options: ResourceListOptions,
): (ResourceSet & { refresh(): Promise<void> }) | undefined {
  return defined.list === undefined ? undefined : new TemplateList(defined, place, options);
}

class TemplateList implements ResourceSet {
  resources: readonly Resource[] = Object.freeze([]);
  readonly #defined: DefinedResource;
  readonly #place: ResourcePlace;
  readonly #options: ResourceListOptions;
  #isWanted = false;
  #isScheduled = false;

  constructor(defined: DefinedResource, place: ResourcePlace, options: ResourceListOptions) {
    this.#defined = defined;
    this.#place = place;
    this.#options = options;
  }

  /** Rejects with what the author's function throws, or a HostError `RESOURCE_LIST` for what is no list. */
  async refresh(): Promise<void> {
    const { signal } = this.#options;
    const given: unknown = await this.#defined.list?.({ signal, changed: () => this.#changed() });
    if (!signal.aborted) this.#take(given);
  }

  #take(given: unknown): void {
    if (!Array.isArray(given)) throw new HostError("RESOURCE_LIST", `list must give a list of resources, not ${kindOf(given)}`);
    const before = new Map(this.resources.map((resource) => [resource.definition.uri, resource]));
    const made = new Map<string, Resource>();
    for (const item of given.slice(0, most) as ListedResource[]) {
      const resource = this.#make(item);
      const old = before.get(resource.definition.uri);
      made.set(resource.definition.uri, old?.revision === resource.revision ? old : resource);
    }
    const now = [...made.values()];
    const isSame = now.length === this.resources.length && now.every((resource, index) => resource === this.resources[index]);
    if (!isSame) this.resources = Object.freeze(now);
  }

  #make(item: ListedResource): Resource {
    try {
      return createListedResource(item, this.#defined, this.#place);
    } catch (cause) {
      throw new HostError("RESOURCE_LIST", `something in it cannot be used: ${(cause as Error).message}`, { cause });
    }
  }

  /** Once for all that is said within a short time, also by the list itself while it is being made. */
  #changed(): void {
    this.#isWanted = true;
    if (this.#isScheduled || this.#options.signal.aborted) return;
    this.#isScheduled = true;
    setTimeout(() => void this.#catchUp(), pause).unref();
  }

  async #catchUp(): Promise<void> {
    this.#isWanted = false;
    try {
      const before = this.resources;
      await this.refresh();
      if (this.resources !== before) this.#options.onChange();
    } catch {
      // The list from before stays; a fault that lasts is told when the module is loaded again.
    }
    this.#isScheduled = false;
    if (this.#isWanted) this.#changed();
  }
}

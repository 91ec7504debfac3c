import type { Completion, PromptDefinition, PromptResult } from "../../tools/prompt.ts";
import type { ResourceContents, ResourceDefinition, ResourceTemplateDefinition } from "../../tools/resource.ts";
import type { Offers } from "./offers.ts";
import type { CompletionOptions, CompletionRef, OfferOptions, OffersChange, ReadOptions, SessionOffers } from "./session-offers.ts";

/** What a session offers beside tools: prompts, which people ask for by name, and resources, which are read by address. */
export class SessionOffering {
  readonly #offers: SessionOffers;

  constructor(offers: SessionOffers) {
    this.#offers = offers;
  }

  /** Everything that is offered beside tools, with origin and revision. @throws HostError `SESSION_CLOSED` */
  get offers(): Offers {
    return this.#offers.current;
  }

  /** The prompts in a stable order. The same array until something about them changes. @throws HostError `SESSION_CLOSED` */
  listPrompts(): readonly PromptDefinition[] {
    return this.#offers.prompts();
  }

  /**
   * Makes a prompt. Its arguments are texts; those that it does not declare are left out.
   * @throws HostError `PROMPT_UNKNOWN`, `PROMPT_ARGUMENTS`, `PROMPT_RESULT` when its handler gives no messages,
   * `SESSION_CLOSED`; what its handler throws; the signal's reason.
   */
  getPrompt(name: string, args: Readonly<Record<string, string>> = {}, options: OfferOptions = {}): Promise<PromptResult> {
    return this.#offers.getPrompt(name, args, options);
  }

  /**
   * The resources in a stable order, the files of every skill among them, which are looked for now if nobody asked
   * before. The same array until something about them changes. @throws HostError `SESSION_CLOSED`
   */
  listResources(): readonly ResourceDefinition[] {
    return this.#offers.resources();
  }

  /** The patterns of addresses that can be read beside those that are listed. @throws HostError `SESSION_CLOSED` */
  listResourceTemplates(): readonly ResourceTemplateDefinition[] {
    return this.#offers.resourceTemplates();
  }

  /**
   * Reads a resource by its address.
   * @throws HostError `RESOURCE_UNKNOWN` when there is none, `RESOURCE_RESULT` when reading gives no contents,
   * `SESSION_CLOSED`; what its handler throws; the signal's reason.
   */
  readResource(uri: string, options: ReadOptions = {}): Promise<readonly ResourceContents[]> {
    return this.#offers.readResource(uri, options);
  }

  /**
   * Suggests values for an argument of a prompt or a variable of a template, by what was typed so far; at most 100.
   * @throws HostError `PROMPT_UNKNOWN`, `RESOURCE_UNKNOWN` for a template that nobody offers, `SESSION_CLOSED`.
   */
  complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
    options: CompletionOptions = {},
  ): Promise<Completion> {
    return this.#offers.complete(ref, argument, options);
  }

  /**
   * Tells whenever a read of this address may give something else, also when a resource comes there or goes. Settles when
   * that is so from now on; an address that nothing stands at is no error. @throws HostError `SESSION_CLOSED`
   */
  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    return this.#offers.watchResource(uri, listener);
  }

  /**
   * Tells when one of the three lists has become another one. Of `resources` only once they have been listed: who never
   * did so has no list that could be out of date. @throws HostError `SESSION_CLOSED`
   */
  onOffersChanged(listener: (change: OffersChange) => void): Disposable {
    return this.#offers.onChanged(listener);
  }
}

import type { SessionProvider } from "../../../session/turns/turn-options.ts";
import type { Client } from "../clients/client.ts";
import { badParams, type Params } from "../connection/params.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A model that a client declared, and its provider. */
export interface NamedModel {
  readonly model: Fields;
  readonly provider: Fields;
}

/** A provider, and the client that gave it. Only that client is sent its keys. */
export interface GivenProvider {
  readonly fields: Fields;
  readonly client: Client;
}

/** A model that can be selected, with the provider that serves it. */
export interface GivenModel extends NamedModel {
  readonly client: Client;
}

/**
 * The providers and models that clients gave a session, when it was created or while it runs. They exist in memory only, since
 * they contain keys.
 */
export class SessionProviders {
  readonly #providers = new Map<string, GivenProvider>();
  /** By selection id, `provider/id`. */
  readonly #models = new Map<string, Fields>();
  #own: GivenProvider | undefined;
  /** The provider of the session before a model of another one was selected. */
  #first: { readonly provider: SessionProvider | undefined } | undefined;

  /** Keeps what a request that creates, resumes or updates the session contains; the request itself was checked before. */
  keep(params: Params, client: Client): void {
    const own = params.optionalRecord("provider");
    if (own !== undefined) this.#own = { fields: own, client };
    for (const fields of params.records("providers")) {
      if (typeof fields["name"] === "string") this.#providers.set(fields["name"], { fields, client });
    }
    for (const model of params.records("models")) this.#models.set(selectionId(model), model);
  }

  /** Adds providers and models, all or none. Returns the added models. `check` throws for a provider with wrong options. */
  add(params: Params, client: Client, check: (provider: Fields) => void): readonly GivenModel[] {
    const providers = new Map<string, Fields>();
    for (const fields of params.records("providers")) {
      providers.set(this.#newName(params, fields, providers), fields);
      check(fields);
    }
    const models = new Map<string, NamedModel>();
    for (const model of params.records("models")) {
      const provider = providers.get(String(model["provider"])) ?? this.#providers.get(String(model["provider"]))?.fields;
      const id = this.#newId(params, model, models);
      if (provider === undefined)
        throw badParams(
          params.method,
          `model ${id} names provider ${JSON.stringify(model["provider"])}, which this session does not have.`,
        );
      models.set(id, { model, provider });
    }
    for (const [name, fields] of providers) this.#providers.set(name, { fields, client });
    for (const [id, { model }] of models) this.#models.set(id, model);
    return [...models.keys()].map((id) => this.find(id)!);
  }

  /** The model with this selection id, or else with this id at any provider. */
  find(id: string): GivenModel | undefined {
    const model = this.#models.get(id) ?? [...this.#models.values()].find((other) => other["id"] === id);
    const provider = model && this.#providers.get(String(model["provider"]));
    return model && provider && { model, provider: provider.fields, client: provider.client };
  }

  /** The provider of a model: the one that was declared with it, or else the session's only one. */
  providerOf(model: string | undefined): GivenProvider | undefined {
    const found = model === undefined ? undefined : this.find(model);
    if (found !== undefined) return { fields: found.provider, client: found.client };
    // Models of a session that declares models are only those, and those of the runtime's endpoint.
    return this.#own;
  }

  get models(): readonly Fields[] {
    return [...this.#models.values()];
  }

  /** Remembers the session's provider when a model of another one is selected. */
  leaveFirst(provider: SessionProvider | undefined): void {
    this.#first ??= { provider };
  }

  /** The provider to return to for a model that no client declared. Undefined: the session still has it. */
  returnToFirst(): { readonly provider: SessionProvider | undefined } | undefined {
    const first = this.#first;
    this.#first = undefined;
    return first;
  }

  #newName({ method }: Params, fields: Fields, added: ReadonlyMap<string, Fields>): string {
    const { name } = fields;
    if (typeof name !== "string" || name.trim() === "" || name.includes("/"))
      throw badParams(method, `the name of a provider must be a text without "/".`);
    if (this.#providers.has(name) || added.has(name))
      throw badParams(method, `provider ${JSON.stringify(name)} exists already. Use another name.`);
    return name;
  }

  #newId({ method }: Params, model: Fields, added: ReadonlyMap<string, NamedModel>): string {
    for (const key of ["id", "provider"]) {
      if (typeof model[key] !== "string" || model[key] === "") throw badParams(method, `a model needs the text ${JSON.stringify(key)}.`);
    }
    const id = selectionId(model);
    if (this.#models.has(id) || added.has(id)) throw badParams(method, `model ${JSON.stringify(id)} exists already.`);
    return id;
  }
}

/** The id by which a declared model is listed and selected. */
export function selectionId({ provider, id }: Fields): string {
  return `${String(provider)}/${String(id)}`;
}

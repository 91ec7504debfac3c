import { extname } from "node:path";
import { sha256 } from "../../base/canonical-json.ts";
import { type Prepared, type SourceSettings, transformSource } from "./transform-source.ts";

const MAX_ENTRIES = 64;
const MAX_CHARACTERS = 1_000_000;

/**
 * Transformed texts by content, so that switching a branch forth and back, touching a file, or checking it before
 * loading it costs one transform. Small on purpose: it only ever saves a tenth of a millisecond.
 */
export class TransformCache {
  readonly #entries = new Map<string, Prepared>();
  #characters = 0;

  prepare(file: string, text: string, settings: SourceSettings): Prepared {
    const key = `${extname(file)} ${settings.key} ${sha256(text)}`;
    const known = this.#entries.get(key);
    if (known !== undefined) this.#entries.delete(key);
    const prepared = known ?? transformSource(file, text, settings);
    if (known === undefined) this.#characters += prepared.code.length;
    this.#entries.set(key, prepared);
    this.#shrink();
    return prepared;
  }

  clear(): void {
    this.#entries.clear();
    this.#characters = 0;
  }

  #shrink(): void {
    for (const [key, { code }] of this.#entries) {
      if (this.#entries.size <= MAX_ENTRIES && this.#characters <= MAX_CHARACTERS) return;
      this.#entries.delete(key);
      this.#characters -= code.length;
    }
  }
}

import { expandPrompt } from "../../formats/skills/expand-prompt.ts";
import { pluginRootOf } from "./skill-path.ts";

const pluginPlaceholder = "${CLAUDE_PLUGIN_ROOT}";

/**
 * The instructions of a SKILL.md. They are kept as UTF-8 outside of the JavaScript heap and decoded when they are read: most are never
 * read, and a single dash or quotation mark would double the size of a string.
 */
export class SkillBody {
  /** Whether there is no text. */
  readonly isBlank: boolean;
  /** Whether it names files of the plugin around its folder. */
  readonly usesPlugin: boolean;
  readonly #folder: string;
  readonly #bytes: Buffer;
  readonly #pluginRoot: string | undefined;

  /** `bytes`: the body as UTF-8, without expansion. `usesPlugin`: whether it names files of a plugin, if that is known. */
  constructor(folder: string, bytes: Buffer, usesPlugin: boolean = bytes.includes(pluginPlaceholder)) {
    this.#folder = folder;
    this.#bytes = bytes;
    this.isBlank = bytes.length === 0;
    this.usesPlugin = usesPlugin;
    this.#pluginRoot = this.usesPlugin ? pluginRootOf(folder) : undefined;
  }

  /** Expands placeholders in one pass: inserted text is never expanded again. With arguments also those for arguments. */
  expand(argumentsText?: string, argumentNames: readonly string[] = []): string {
    const given = argumentsText === undefined ? {} : { argumentsText, argumentNames };
    return expandPrompt(this.source, { baseDir: this.#folder, pluginRoot: this.#pluginRoot, ...given });
  }

  /** As written, without expansion. */
  get source(): string {
    return this.#bytes.toString("utf8");
  }
}

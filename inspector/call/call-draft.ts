import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { isRecord, type Json } from "../../src/base/json.ts";
import type { ArgumentProblem } from "./form-errors.ts";

/**
 * The arguments of the next call of a tool. The form and the editor show the same draft: each changes it, and follows it. The text is
 * what counts; the form is left as it was while the text is not JSON.
 */
export class CallDraft {
  readonly text: Signal<string>;
  readonly value: Signal<Json>;
  readonly syntaxError: Signal<string | undefined> = signal(undefined);
  readonly problems: Signal<readonly ArgumentProblem[]> = signal([]);
  readonly canCall: ReadonlySignal<boolean> = computed(() => this.syntaxError.value === undefined);

  constructor(value: Json = {}) {
    this.value = signal(value);
    this.text = signal(JSON.stringify(value, undefined, 2));
  }

  /** From the form. */
  setValue(value: unknown): void {
    const text = JSON.stringify(isRecord(value) ? value : {}, undefined, 2);
    if (text === this.text.value) return;
    // Without members that are undefined: what is not set is not sent.
    this.value.value = JSON.parse(text) as Json;
    this.text.value = text;
    this.syntaxError.value = undefined;
  }

  /** From the editor. Also takes a call that was pasted whole: `{"name": …, "arguments": {…}}`. */
  setText(text: string): void {
    if (text === this.text.value) return;
    this.text.value = text;
    try {
      const parsed: unknown = JSON.parse(text);
      if (!isRecord(parsed)) throw new SyntaxError("Arguments are a JSON object.");
      this.syntaxError.value = undefined;
      const pasted = argumentsOfCall(parsed);
      if (pasted === undefined) this.value.value = parsed;
      else this.setValue(pasted);
    } catch (error) {
      this.syntaxError.value = error instanceof Error ? error.message : String(error);
    }
  }
}

/** The arguments of a pasted call of MCP or of a model. */
function argumentsOfCall(pasted: Json): Json | undefined {
  const call = isRecord(pasted["params"]) && pasted["method"] === "tools/call" ? pasted["params"] : pasted;
  if (typeof call["name"] !== "string" || Object.keys(call).some((key) => !["name", "arguments", "_meta", "id", "type"].includes(key)))
    return undefined;
  if (isRecord(call["arguments"])) return call["arguments"];
  if (typeof call["arguments"] !== "string") return undefined;
  const parsed: unknown = JSON.parse(call["arguments"]);
  return isRecord(parsed) ? parsed : undefined;
}

/** Marks what `definePrompt` returns, also across copies of this package in one process. */
export const promptBrand: unique symbol = Symbol.for("skillhost.prompt");

/** Whether `definePrompt` made it. Never throws. */
export function hasPromptBrand(value: unknown): boolean {
  try {
    return typeof value === "object" && value !== null && (value as { readonly [promptBrand]?: unknown })[promptBrand] === true;
  } catch {
    // A proxy that throws is not a prompt.
    return false;
  }
}

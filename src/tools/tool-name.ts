/** The result of `checkToolName`: the name is usable, or the nearest usable one. */
export type ToolNameCheck = { readonly ok: true } | { readonly ok: false; readonly nearest: string; readonly message: string };

const maxLength = 64;
const legalName = /^[a-zA-Z0-9_-]{1,64}$/;

/** Whether models can call a tool by this name. If not, `nearest` is the closest usable name. */
export function checkToolName(name: unknown): ToolNameCheck {
  if (typeof name === "string" && legalName.test(name)) return { ok: true };
  const nearest = nearestToolName(typeof name === "string" ? name : "");
  const given = typeof name === "string" ? shown(name) : `not a string (${name === null ? "null" : typeof name})`;
  const rule = `A tool name must have 1 to ${maxLength} letters (a-z, A-Z), digits, "_" or "-"`;
  return { ok: false, nearest, message: `${rule}; this one is ${given}. Name it "${nearest}".` };
}

/** The nearest name that models can call: without accents, `_` for other characters, at most 64 characters. Legal names stay unchanged. */
export function nearestToolName(name: string): string {
  if (legalName.test(name)) return name;
  const plain = name
    .slice(0, 1_000)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "");
  const trimmed = plain.replace(/^[^a-zA-Z0-9_-]+|[^a-zA-Z0-9_-]+$/g, "");
  const legal = trimmed.replace(/[^a-zA-Z0-9_-]+/g, "_").slice(0, maxLength);
  return legal === "" ? "tool" : legal;
}

function shown(name: string): string {
  const text = JSON.stringify(name);
  return text.length > 100 ? `${text.slice(0, 100)}…"` : text;
}

import { sha256 } from "../base/canonical-json.ts";

const maxLength = 128;
const legalName = /^[A-Za-z0-9_.-]{1,128}$/;

/** Whether clients accept this prompt name. */
export function isPromptName(name: unknown): name is string {
  return typeof name === "string" && legalName.test(name);
}

/**
 * The name under which a prompt is offered: a legal name stays; otherwise hyphens replace illegal characters, and part of a hash of the
 * whole name follows, so that different names stay different.
 */
export function promptName(name: string): string {
  if (legalName.test(name)) return name;
  const plain = name
    .slice(0, 1000)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(/[^A-Za-z0-9_.-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  const suffix = `-${sha256(name).slice(0, 8)}`;
  return `${plain.slice(0, maxLength - suffix.length) || "prompt"}${suffix}`;
}

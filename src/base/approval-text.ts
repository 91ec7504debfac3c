import { sha256 } from "./canonical-json.ts";
import { exactText } from "./hidden-characters.ts";

/** Untrusted text for a user's approval. */
export interface ApprovalText {
  readonly text: string;
  /** False: the middle is omitted, which the user must accept too. */
  readonly isWhole: boolean;
}

const mostCharacters = 4_000;
const mostLines = 80;
const head = { characters: 2_500, lines: 50 };
const tail = { characters: 1_000, lines: 20 };

/**
 * Formats an untrusted text so that it cannot imitate the host's output: each line begins with a bar, and invisible characters
 * are escaped. A long text is shortened to its beginning and end, with the number of omitted characters and a digest of the
 * whole.
 */
export function approvalText(text: string, { isCut = true }: { readonly isCut?: boolean } = {}): ApprovalText {
  const shown = exactText(text);
  const lines = shown.split("\n");
  if (!isCut || (shown.length <= mostCharacters && lines.length <= mostLines)) return { text: barred(shown), isWhole: true };
  const first = lines.slice(0, head.lines).join("\n").slice(0, head.characters);
  const last = lines.slice(-tail.lines).join("\n").slice(-tail.characters);
  const omitted = shown.length - first.length - last.length;
  const note = `… ${omitted} of ${shown.length} characters are not shown. SHA-256 of the whole: ${sha256(text)} …`;
  return { text: `${barred(withoutHalf(first))}\n${note}\n${barred(withoutHalf(last))}`, isWhole: false };
}

function barred(text: string): string {
  return text.replace(/^/gm, "| ");
}

/** Removes surrogate halves of characters that were cut. */
function withoutHalf(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}

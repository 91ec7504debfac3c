import { sha256 } from "./canonical-json.ts";
import { exactText } from "./hidden-characters.ts";

/** Text of strangers for people who decide about it. */
export interface ApprovalText {
  readonly text: string;
  /** False: a part in the middle is left out, so the person must agree to that as well. */
  readonly isWhole: boolean;
}

const mostCharacters = 4_000;
const mostLines = 80;
const head = { characters: 2_500, lines: 50 };
const tail = { characters: 1_000, lines: 20 };

/**
 * Shows a text so that it cannot pass for ours: each of its lines begins with a bar, and what cannot be seen is written as
 * an escape. Of a long one the beginning and the end are shown, with the number of characters between them and a digest
 * of the whole, so that no text ends unseen.
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

/** Without the halves of characters that were cut through. */
function withoutHalf(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}

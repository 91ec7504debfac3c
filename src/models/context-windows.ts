/** Tokens that a request to a model may have, as far as its name tells. Newest first, since older names begin the same way. */
const windows: readonly (readonly [name: RegExp, tokens: number])[] = [
  [/gpt-5/i, 400_000],
  [/gpt-4\.1/i, 1_047_576],
  [/gpt-4o|gpt-4-turbo|gpt-oss/i, 128_000],
  [/(?:^|\/)o[134](?:-|$)/i, 200_000],
  [/claude/i, 200_000],
  [/gemini/i, 1_048_576],
];

/** The context window of a well-known model; undefined for others. */
export function contextWindowOf(model: string): number | undefined {
  return windows.find(([name]) => name.test(model))?.[1];
}

/** Whether this is `npm run test:soak`, which may take its time. */
export const isSoak: boolean = process.env["SKILLHOST_SOAK"] !== undefined;

/** How often a long test does what it does: few times in `npm test`, many times in `npm run test:soak`. */
export function rounds(few: number, many: number): number {
  return isSoak ? many : few;
}

/**
 * What generated inputs begin with: the same in each run, so that a run says something about the change and not about luck.
 * `SKILLHOST_TEST_SEED` names another, or `random` one.
 */
export const seed: number = chosenSeed(process.env["SKILLHOST_TEST_SEED"]);

function chosenSeed(text: string | undefined): number {
  if (text === undefined) return 20_261_122;
  return text === "random" ? Math.floor(Math.random() * 2 ** 31) : Number.parseInt(text, 10);
}

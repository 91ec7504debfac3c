/** True for `npm run test:soak`, which may run for a long time. */
export const isSoak: boolean = process.env["SKILLHOST_SOAK"] !== undefined;

/** The number of rounds of a long test: few in `npm test`, many in `npm run test:soak`. */
export function rounds(few: number, many: number): number {
  return isSoak ? many : few;
}

/** The number of inputs that a fuzzer generates, as `rounds`. `SKILLHOST_SOAK_SHARE`, which `.ci/run` sets, makes less of many. */
export function generated(few: number, many: number): number {
  return Math.max(few, Math.round(rounds(few, many) * Number(process.env["SKILLHOST_SOAK_SHARE"] ?? 1)));
}

/**
 * The seed of generated inputs. It is the same in each run, so that a failure is caused by a change and not by chance.
 * `SKILLHOST_TEST_SEED` sets another one; `random` picks one.
 */
export const seed: number = chosenSeed(process.env["SKILLHOST_TEST_SEED"]);

function chosenSeed(text: string | undefined): number {
  if (text === undefined) return 20_261_122;
  return text === "random" ? Math.floor(Math.random() * 2 ** 31) : Number.parseInt(text, 10);
}

/** Whether this is `npm run test:soak`, which may take its time. */
export const isSoak: boolean = process.env["SKILLHOST_SOAK"] !== undefined;

/** How often a long test does what it does: few times in `npm test`, many times in `npm run test:soak`. */
export function rounds(few: number, many: number): number {
  return isSoak ? many : few;
}

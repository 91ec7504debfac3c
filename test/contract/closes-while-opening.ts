import { expect, test } from "vitest";

/** An owner and something that it opens. Each moment of closing gets a new one. */
export interface Opening {
  /** Starts to open something. It may reject because the owner closes; its result is ignored. */
  open(): unknown;
  /** Closes the owner. */
  close(): unknown;
  /** Number of open processes, connections, subscriptions or files. */
  countOpen(): number | Promise<number>;
}

const turnsOfTheLoop = 3;
const microtasks = 12;

/**
 * The contract of everything that opens something: when its owner closes, at any moment of the opening, nothing stays open and
 * nothing is opened afterwards.
 */
export function closesWhileOpening(title: string, create: () => Opening | Promise<Opening>): void {
  const moments: readonly (readonly [string, (opening: Promise<unknown>) => Promise<unknown>])[] = [
    ["at once", async () => {}],
    ...[1, 2, 4, microtasks].map((count) => [`${count} microtasks later`, () => waitMicrotasks(count)] as const),
    ...Array.from(
      { length: turnsOfTheLoop },
      (_, index) => [`${index + 1} turns of the event loop later`, () => waitTurns(index + 1)] as const,
    ),
    ["once it is open", (opening) => opening],
  ];
  test.each(moments)(`${title} leaves nothing open when its owner closes %s`, async (_moment, until) => {
    const { open, close, countOpen } = await create();
    const opening = settled(open);
    await until(opening);
    await settled(close);
    await opening;
    await expectNoneOpen(countOpen);
    await settled(open);
    await expectNoneOpen(countOpen);
  });
}

async function expectNoneOpen(countOpen: Opening["countOpen"]): Promise<void> {
  await expect.poll(async () => await countOpen(), { message: "things that are still open" }).toBe(0);
}

/** A failed opening also leaves nothing open. */
async function settled(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch {
    // The contract only concerns what stays open.
  }
}

async function waitMicrotasks(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await undefined;
}

async function waitTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

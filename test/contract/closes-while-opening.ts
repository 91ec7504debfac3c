import { expect, test } from "vitest";

/** An owner, and something that it opens. A fresh one is made for each moment at which the owner closes. */
export interface Opening {
  /** Begins to open something. May reject because the owner closes; what it gives is not looked at. */
  open(): unknown;
  /** Closes the owner. */
  close(): unknown;
  /** How many of the things that were opened still are: processes, connections, subscriptions, files. */
  countOpen(): number | Promise<number>;
}

const turnsOfTheLoop = 3;
const microtasks = 12;

/**
 * The contract of everything that opens something: when its owner closes, nothing stays open, at whatever moment of the
 * opening that happens, and nothing is opened afterwards.
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
  test.each(moments)(`${title}: leaves nothing open when its owner closes %s`, async (_moment, until) => {
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

/** Failing is one of the ways to open nothing. */
async function settled(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch {
    // The contract is about what stays open.
  }
}

async function waitMicrotasks(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await undefined;
}

async function waitTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

import { describe, expect, test } from "vitest";
import { attackStarts, attackWatcher, type ExchangePoint, exchangePoints } from "./exchange-attack.ts";
import { canExchangeAtomically } from "./exchanger.ts";

const points = Object.keys(exchangePoints) as ExchangePoint[];

// Exchanges in three steps are possible everywhere, and leave a name without a file for a moment.
describe.each(canExchangeAtomically() ? (["atomic", "steps"] as const) : (["steps"] as const))("while names are exchanged (%s)", (way) => {
  test.each(points)("hosts that start use nothing of a stranger's: %s", async (point) => {
    const { successes } = await attackStarts({ point, way, partner: "files", exchanges: 20, pause: 5000 });
    expect(successes).toEqual([]);
  });

  test.each(points)("a host that watches uses nothing of a stranger's, and serves the signed skill afterwards: %s", async (point) => {
    const { successes } = await attackWatcher({ point, way, partner: "files", exchanges: 10, pause: 20_000 });
    expect(successes).toEqual([]);
  });
});
